"""Make machines a cluster of Kubernetes over SSH: their list, their check, the plan of what is installed, and its steps."""
