"""Logs, code archives and remote files; the only package that opens remote storage."""
