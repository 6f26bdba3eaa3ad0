"""Check a cluster before the first job."""
