"""Act on the health of nodes: cordon, validate and return them, beside the control loop."""
