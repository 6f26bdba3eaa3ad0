"""Check a Hadoop cluster before the first job."""
