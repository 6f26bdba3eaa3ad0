"""A gang that a bound of its queue could never let start is told so before it is stored, with the bound's name."""

from __future__ import annotations

import pytest

from corral.model.queues import CellQuota, QueueSpec
from corral.scheduler import QueuesConfigured, could_ever_fit
from tests.scheduler.machines import cluster, gang, node, role


@pytest.mark.parametrize(
    ("bound", "field"),
    [
        ({"limit": {"devices": 2}}, "limit"),
        ({"deserved": {"devices": 1}, "borrowing_limit": {"devices": 1}}, "borrowingLimit"),
        ({"user_limit": {"devices": 2}}, "userLimit"),
        ({"group_limit": {"devices": 2}}, "groupLimit"),
    ],
)
def test_each_bound_of_a_queue_or_one_above_it_is_named(bound: dict[str, object], field: str) -> None:
    there = cluster(node("n1", 8))
    there.apply(QueuesConfigured((QueueSpec("top", **bound), QueueSpec("team", parent="top"))))  # type: ignore[arg-type]
    assert could_ever_fit(there, gang("fits", role(devices=2), queue="team", groups=("lab",))) is None
    found = could_ever_fit(there, gang("large", role(devices=3), queue="team", groups=("lab",)))
    assert found is not None and not found.possible
    assert found.binding.message == f"The {field} of queue top allows 2 devices, and this job needs 3 devices to start."
    assert could_ever_fit(there, gang("other", role(devices=3), queue="else")) is None


def test_cells_of_its_own_hold_what_the_limit_of_the_queue_does_not() -> None:
    there = cluster(node("n1", 4), node("n2", 4))
    spec = QueueSpec("owner", cells=(CellQuota("node", 1),), limit={"devices": 2})
    there.apply(QueuesConfigured((spec,)))
    assert could_ever_fit(there, gang("at-home", role(devices=4), queue="owner")) is None
