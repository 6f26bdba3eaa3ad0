"""Workloads for schedulers: what is submitted when, and what became of it."""
