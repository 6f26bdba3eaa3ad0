"""The storages that users may use, and their files."""
