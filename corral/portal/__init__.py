"""The built web page and the way to its files; no logic."""
