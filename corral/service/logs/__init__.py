"""Find and read the logs of tasks."""
