"""Processes with limits of memory and processor time, for what would hold up everybody else."""
