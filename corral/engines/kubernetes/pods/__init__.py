"""The pods of tasks, from their manifest to their exit code."""
