"""Volumes of pods: storages, and the nodes that reach a claim."""
