"""The local engine: tasks are processes on this machine, each under a small shim that outlives the server."""
