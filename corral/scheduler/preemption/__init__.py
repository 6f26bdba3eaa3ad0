"""Choose the gangs that are evicted for others, and estimate when they return."""
