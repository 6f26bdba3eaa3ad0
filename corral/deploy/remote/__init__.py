"""Reach hosts by OpenSSH's own client: probe them, and try the ports between them."""
