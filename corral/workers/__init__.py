"""Worker processes with limits on memory and processor time, for calls that would block the server."""
