"""Jobs that leave their devices idle."""
