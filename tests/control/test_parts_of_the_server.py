"""Control tells of its own state, of engines that are away, and of agents that are silent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import corral
from corral.control.server_parts import parts_of, versions_of
from corral.kernel.errors import Unavailable
from corral.model.metrics.agent_page import AgentVersions
from corral.model.server_parts import ServerPart

DAY = 86400.0


def test_every_part_that_does_not_work_says_why() -> None:
    away = {"far": Unavailable("engine-opening", "The engine far is still being opened.")}
    agents = {"node2:9102": "It does not answer.", "node1:9102": "", "node0:9102": ""}
    told = {"node1:9102": AgentVersions("9.9", "6.1.0", ("Debian GNU/Linux 12", "nvidia 550.54"))}
    ends = {("near", "api"): 30 * DAY + 1, ("near", "registry"): 31 * DAY, ("far", "api"): 0.0}
    found = parts_of(
        ready=True, troubles=["No cycle."], engines=["near", "far"], versions={"near": "v1.34.1"}, away=away,
        agents=agents, certificates=ends, now=1.0, told=told,
    )  # fmt: skip
    assert found == [
        ServerPart("scheduler", "scheduler", "degraded", corral.__version__, ("No cycle.",)),
        ServerPart("engine", "far", "away", "", ("The engine far is still being opened.",)),
        ServerPart("engine", "near", "ok", "v1.34.1"),
        ServerPart("agent", "node0:9102", "ok"),
        ServerPart("agent", "node1:9102", "ok", "9.9", (), ("Linux 6.1.0", "Debian GNU/Linux 12", "nvidia 550.54")),
        ServerPart("agent", "node2:9102", "away", "", ("It does not answer.",)),
    ]


def test_a_scheduler_that_starts_says_so() -> None:
    (scheduler,) = parts_of(
        ready=False, troubles=[], engines=[], versions={}, away={}, agents={}, certificates={}, now=0.0
    )
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
    ends = {("kubernetes", "api"): 100 * DAY, ("other", "api"): 0.0}
    parts = parts_of(
        ready=True, troubles=[], engines=["kubernetes"], versions={}, away={}, agents={}, certificates=ends, now=now + 1,
    )  # fmt: skip
    (engine,) = [each for each in parts if each.kind == "engine"]
    assert engine.state == ("degraded" if said else "ok")
    assert [reason.split("cluster ")[1].split(":")[0] for reason in engine.reasons] == said


def test_an_engine_whose_clusters_registry_shows_a_certificate_near_its_end_says_how_it_is_renewed() -> None:
    ends = {("kubernetes", "api"): 10 * DAY, ("kubernetes", "registry"): 20 * DAY, ("kubernetes", "hub"): 0.0}
    parts = parts_of(
        ready=True, troubles=[], engines=["kubernetes"], versions={}, away={}, agents={}, certificates=ends, now=1.0,
    )  # fmt: skip
    (engine,) = [each for each in parts if each.kind == "engine"]
    assert engine.state == "degraded" and engine.reasons == (
        "The certificates of its cluster end on 1970-01-11: renew them (corral deploy certs renew, or kubeadm certs renew "
        "all).",
        "The certificates of its cluster's registry end on 1970-01-21: run corral deploy up, which makes new ones.",
    )


class Cluster:
    """An engine's cluster that tells a version, refuses, or never answers."""

    def __init__(self, told: str) -> None:
        self.told = told

    async def version(self) -> str:
        if self.told == "refuses":
            raise Unavailable("cluster-unreachable", "It does not answer.")
        if self.told == "waits":
            await asyncio.Event().wait()
        return self.told


async def test_versions_are_told_by_clusters_that_have_one_and_answer_in_time() -> None:
    engines: dict[str, Any] = {each: Cluster(each) for each in ("v1.34.1", "refuses", "waits")}
    told = await versions_of({**engines, "local": object()})  # type: ignore[dict-item]
    assert told == {"v1.34.1": "v1.34.1", "refuses": "", "waits": ""}
