"""The cluster's objects that stand for jobs."""
