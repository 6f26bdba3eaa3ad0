"""The completion policy of the canonical document: the rule for numbers of tasks, to which dialects map their words."""

from __future__ import annotations

from corral.spec.job_parts import MAX_REPLICAS


def reachable(count: int) -> int:
    """Return -1, which disables the condition, for a number of tasks that no role can reach; else the number."""
    return -1 if count < 1 or count > MAX_REPLICAS else count
