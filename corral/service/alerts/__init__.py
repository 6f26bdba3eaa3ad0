"""Alerts and silences as people see them, and Alertmanager's webhook."""
