"""Gangs that hang: how long they may be silent, and what is stored of those that are silent for longer."""
