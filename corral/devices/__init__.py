"""Finds devices and the links between them, and reads their health."""
