"""Prepare machines for a cluster over SSH: the list of hosts, their check, and the plan of what is installed on them."""
