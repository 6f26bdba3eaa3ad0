"""Calls to the API server: access, transport, errors, retries and permissions."""
