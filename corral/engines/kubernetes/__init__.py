"""Run tasks as pods: Corral chooses the node, creates the pod, watches it and reports how it ended."""
