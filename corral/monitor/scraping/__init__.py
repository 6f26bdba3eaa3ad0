"""Read what the agents of other machines measure."""
