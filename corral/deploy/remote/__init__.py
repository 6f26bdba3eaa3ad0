"""Reach hosts by OpenSSH's own client: probe them, try the ports between them, and do the steps of a plan."""
