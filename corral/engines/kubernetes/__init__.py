"""Tasks as pods: Corral decides the node, writes the pod, watches it and tells how it ended."""
