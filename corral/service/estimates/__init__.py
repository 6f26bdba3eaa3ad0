"""Estimates of starts: how good they were, and how past errors correct the next ones."""
