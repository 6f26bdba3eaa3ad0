"""Pure functions from job and placement to command, environment and rendezvous of each task."""
