"""Explain why a gang waits, when it starts, and which smallest change would start it now."""
