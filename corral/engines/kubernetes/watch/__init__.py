"""Local copies of the cluster's objects, kept by list and watch."""
