"""The job and cluster language: a bad document dies here, with a position and a suggestion."""
