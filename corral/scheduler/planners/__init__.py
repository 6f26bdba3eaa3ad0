"""The planners: each turns cluster, queue and policy into a plan."""
