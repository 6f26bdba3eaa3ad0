"""Workloads that are played against the scheduler of a Kubernetes cluster."""
