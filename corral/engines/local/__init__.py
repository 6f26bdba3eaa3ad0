"""The local engine: tasks are processes on this machine, each under a tiny shim that outlives the server."""
