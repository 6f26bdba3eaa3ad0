"""Assertions about waits, use and preemptions, such as `wait.p95(queue=research) <= 1.1 * base`: parse and evaluate."""
