"""SSH into running tasks: the protocol ends in this server, and its channels are commands in the task and its ports."""
