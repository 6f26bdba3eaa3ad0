"""Alerts: evaluate the rules file over what control measures, store what becomes of alerts, and act on them."""
