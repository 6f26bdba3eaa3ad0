"""Measure machines with standard benchmarks, compare results, and name the nodes below their like."""
