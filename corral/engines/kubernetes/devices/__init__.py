"""Devices by Dynamic Resource Allocation: slices, claims and managed nodes."""
