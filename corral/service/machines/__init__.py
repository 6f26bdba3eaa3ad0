"""Nodes, queues and cells as people see them, and operations on nodes."""
