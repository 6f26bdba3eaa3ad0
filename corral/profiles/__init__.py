"""Read profiles of running tasks: stacks, time by function, traces, and what they advise. Pure functions."""
