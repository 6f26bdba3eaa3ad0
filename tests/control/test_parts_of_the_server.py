"""Control tells of its own state, of engines that are away, and of agents that are silent."""

from __future__ import annotations

import corral
from corral.control.server_parts import parts_of
from corral.kernel.errors import Unavailable
from corral.model.server_parts import ServerPart


def test_every_part_that_does_not_work_says_why() -> None:
    away = {"far": Unavailable("engine-opening", "The engine far is still being opened.")}
    agents = {"node2:9102": "It does not answer.", "node1:9102": ""}
    found = parts_of(ready=True, troubles=["No cycle."], engines=["near", "far"], away=away, agents=agents)
    assert found == [
        ServerPart("scheduler", "scheduler", "degraded", corral.__version__, ("No cycle.",)),
        ServerPart("engine", "far", "away", "", ("The engine far is still being opened.",)),
        ServerPart("engine", "near", "ok"),
        ServerPart("agent", "node1:9102", "ok"),
        ServerPart("agent", "node2:9102", "away", "", ("It does not answer.",)),
    ]


def test_a_scheduler_that_starts_says_so() -> None:
    (scheduler,) = parts_of(ready=False, troubles=[], engines=[], away={}, agents={})
    assert (scheduler.state, scheduler.reasons) == ("degraded", ("The scheduler is still starting.",))
