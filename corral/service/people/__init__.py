"""Accounts, groups, credentials and sessions."""
