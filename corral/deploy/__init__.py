"""Prepare machines for a cluster over SSH: their list, their check, the plan of what is installed, and its first steps."""
