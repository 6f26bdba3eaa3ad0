"""Suites: which benchmarks run where, and the jobs that run them."""
