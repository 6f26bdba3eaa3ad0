"""Profiles of running jobs: taken in their tasks, read, kept and compared."""
