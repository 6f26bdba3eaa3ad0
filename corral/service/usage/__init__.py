"""Reports on who used how much."""
