"""The job and cluster language: parse and validate documents; report each error with position and suggestion."""
