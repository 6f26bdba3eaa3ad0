"""Scheduling policies: their parts (order, allot, preempt), the history that parts read, and how they are found."""
