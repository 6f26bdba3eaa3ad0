"""Journals without the names, commands, environments and free texts of the original."""
