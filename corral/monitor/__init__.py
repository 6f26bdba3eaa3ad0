"""Metrics, profiles and alerts: observes, never decides."""
