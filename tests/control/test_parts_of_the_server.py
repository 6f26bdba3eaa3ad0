"""Control tells of its own state, of engines that are away, and of agents that are silent."""

from __future__ import annotations

import pytest

import corral
from corral.control.server_parts import parts_of
from corral.kernel.errors import Unavailable
from corral.model.server_parts import ServerPart

DAY = 86400.0


def test_every_part_that_does_not_work_says_why() -> None:
    away = {"far": Unavailable("engine-opening", "The engine far is still being opened.")}
    agents = {"node2:9102": "It does not answer.", "node1:9102": ""}
    found = parts_of(
        ready=True, troubles=["No cycle."], engines=["near", "far"], away=away, agents=agents,
        certificates={"near": 30 * DAY + 1, "far": 0.0}, now=1.0,
    )  # fmt: skip
    assert found == [
        ServerPart("scheduler", "scheduler", "degraded", corral.__version__, ("No cycle.",)),
        ServerPart("engine", "far", "away", "", ("The engine far is still being opened.",)),
        ServerPart("engine", "near", "ok"),
        ServerPart("agent", "node1:9102", "ok"),
        ServerPart("agent", "node2:9102", "away", "", ("It does not answer.",)),
    ]


def test_a_scheduler_that_starts_says_so() -> None:
    (scheduler,) = parts_of(ready=False, troubles=[], engines=[], away={}, agents={}, certificates={}, now=0.0)
    assert (scheduler.state, scheduler.reasons) == ("degraded", ("The scheduler is still starting.",))


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (0.0, []),
        (70 * DAY, ["end on 1970-04-11"]),
        (99.9 * DAY, ["end on 1970-04-11"]),
        (101 * DAY, ["have ended on 1970-04-11"]),
    ],
)
def test_an_engine_whose_clusters_certificates_end_within_a_month_says_when(now: float, said: list[str]) -> None:
    ends = {"kubernetes": 100 * DAY}
    parts = parts_of(
        ready=True, troubles=[], engines=["kubernetes"], away={}, agents={}, certificates=ends, now=now + 1
    )
    (engine,) = [each for each in parts if each.kind == "engine"]
    assert engine.state == ("degraded" if said else "ok")
    assert [reason.split("cluster ")[1].split(":")[0] for reason in engine.reasons] == said
