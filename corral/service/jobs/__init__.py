"""Submit, read, change and stop jobs."""
