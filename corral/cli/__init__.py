"""The `corral` command: commands over the client, and commands that start and maintain a server."""
