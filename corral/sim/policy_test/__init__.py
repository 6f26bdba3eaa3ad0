"""Policy tests: play a trace under documents and under a base, and check assertions about the outcome."""
