"""Idle devices: what control does about jobs that leave theirs idle."""
