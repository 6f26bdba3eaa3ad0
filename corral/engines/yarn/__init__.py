"""Run tasks in YARN containers: Corral chooses the node, a container is a slot that runs one attempt after the other."""
