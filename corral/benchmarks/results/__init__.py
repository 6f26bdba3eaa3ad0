"""Results: what tasks told, files of it, and their comparison."""
