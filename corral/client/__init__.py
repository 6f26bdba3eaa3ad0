"""The Python SDK over HTTP, sync and async; it installs without the server."""
