"""Gangs that hang: look at their ranks, keep a bundle of what is found, tell people, and act as the queue says."""
