"""Metrics for Prometheus: the table of their names, their values, and how events are counted."""
