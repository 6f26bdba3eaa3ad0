"""Corral runs AI jobs on shared accelerators."""

__version__ = "0.1.0"
