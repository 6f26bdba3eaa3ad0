"""Types of jobs, tasks and machines: states, events, commands, placements, inventories."""
