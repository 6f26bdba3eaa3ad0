"""What is true about jobs, tasks and machines, as types: states, events, commands, placements, inventories."""
