"""Kubernetes' rule for how long a running task may stay on a node with a `NoExecute` taint, as a table."""

from __future__ import annotations

from math import inf

import pytest

from corral.model.inventory import Taint
from corral.model.requests import NodeRules, Toleration
from corral.scheduler.placement.node_fit import stays_until

OUT = Taint("maintenance", "today", "NoExecute")
SICK = Taint("sick", "", "NoExecute")


def some(seconds: int, key: str = "maintenance") -> Toleration:
    return Toleration(key, "Exists", effect="NoExecute", seconds=seconds)


@pytest.mark.parametrize(
    ("taints", "tolerations", "until", "named"),
    [
        ({}, (), inf, None),
        ({Taint("team", "a", "NoSchedule"): 100.0, Taint("old", "", "PreferNoSchedule"): 100.0}, (), inf, None),
        ({OUT: 100.0}, (), 100.0, OUT),
        ({OUT: 100.0}, (Toleration("maintenance", "Equal", "today"),), inf, None),
        ({OUT: 100.0}, (Toleration("maintenance", "Equal", "tomorrow"),), 100.0, OUT),
        ({OUT: 100.0}, (Toleration("maintenance", "Exists", effect="NoSchedule"),), 100.0, OUT),
        ({OUT: 100.0}, (Toleration("", "Exists"),), inf, None),
        ({OUT: 100.0}, (some(60),), 160.0, OUT),
        ({OUT: 100.0}, (some(0),), 100.0, OUT),
        ({OUT: 10.0}, (some(60),), 110.0, OUT),
        ({OUT: 100.0, SICK: 120.0}, (some(60), some(10, "sick")), 130.0, SICK),
        ({OUT: 100.0, SICK: 120.0}, (some(-1), some(10, "sick")), 130.0, SICK),
        ({OUT: 100.0, SICK: 300.0}, (some(600),), 300.0, SICK),
        ({OUT: 100.0}, (some(60), some(-1)), 160.0, OUT),
    ],
)
def test_a_task_placed_at_50_stays_until(
    taints: dict[Taint, float], tolerations: tuple[Toleration, ...], until: float, named: Taint | None
) -> None:
    """Its time starts with the taint or, if that was there before, with its own start."""
    assert stays_until(taints.items(), NodeRules(tolerations=tolerations), 50.0) == (until, named)
