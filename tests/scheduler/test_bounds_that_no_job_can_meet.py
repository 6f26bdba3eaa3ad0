"""A gang that a bound of its queue could never admit is refused at submission, with the bound's name."""

from __future__ import annotations

import pytest

from corral.model.queues import CellQuota, QueueSpec
from corral.model.requests import GangRequest
from corral.scheduler import Policy, QueuesConfigured, could_ever_fit
from corral.scheduler.planners.builtin.planning import explain
from tests.scheduler.machines import cluster, gang, node, queue, role


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


OWNER = QueueSpec("owner", cells=(CellQuota("node", 1),), limit={"devices": 2})
TOO_MUCH = "The limit of queue owner allows 2 devices, and this job needs {} devices to start."


@pytest.mark.parametrize(
    ("request_", "refused"),
    [
        (gang("at-home", role(1, 4), queue="owner"), ""),
        (gang("in-parts", role(4, 1), queue="owner"), ""),
        (gang("elastic", role(8, 1, minimum=4), queue="owner"), ""),
        (gang("too-large", role(2, 4), queue="owner"), TOO_MUCH.format(8)),
        (gang("too-wide", role(3, 2), queue="owner"), TOO_MUCH.format(6)),
        (gang("small-abroad", role(1, 2, node_selector={"disk": "fast"}), queue="owner"), ""),
        (gang("opportunist", role(1, 4), queue="owner", priority=-1), TOO_MUCH.format(4)),
    ],
    ids=lambda value: getattr(value, "job", ""),
)
def test_an_owner_is_held_against_its_bounds_where_its_own_cells_cannot_hold_the_gang(
    request_: GangRequest, refused: str
) -> None:
    there = cluster(node("n1", 4), node("n2", 4, labels={"disk": "fast"}))
    there.apply(QueuesConfigured((OWNER,)))
    before = there.digest()
    found = could_ever_fit(there, request_)
    assert (found.binding.message if found else "") == refused
    assert there.digest() == before
    told = explain(there, queue(request_), Policy(), request_.job, 0.0)
    assert told is not None
    assert told.possible == (found is None), "submit and the line say the same"


def test_an_owner_whose_bounds_allow_borrowing_is_not_refused() -> None:
    there = cluster(node("n1", 4), node("n2", 4))
    there.apply(QueuesConfigured((QueueSpec("owner", cells=(CellQuota("node", 1),), limit={"devices": 8}),)))
    assert could_ever_fit(there, gang("both", role(2, 4), queue="owner")) is None


def test_cells_of_its_own_hold_what_the_limit_of_the_queue_does_not() -> None:
    there = cluster(node("n1", 4), node("n2", 4))
    spec = QueueSpec("owner", cells=(CellQuota("node", 1),), limit={"devices": 2})
    there.apply(QueuesConfigured((spec,)))
    assert could_ever_fit(there, gang("at-home", role(devices=4), queue="owner")) is None
