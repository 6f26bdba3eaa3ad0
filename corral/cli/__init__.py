"""The `corral` command: commands over the client, plus the few that start and tend a server."""
