"""Alerts and silences: what is stored of them, what the API shows, and the matchers that choose among them."""
