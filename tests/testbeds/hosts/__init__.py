"""Hosts of our own: Debian with systemd as PID 1 and an SSH server, each in namespaces of its own on this machine."""
