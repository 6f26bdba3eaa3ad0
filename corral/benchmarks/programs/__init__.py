"""The measurements themselves: programs that run in tasks, with the standard library and what is installed there."""
