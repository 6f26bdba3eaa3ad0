"""A service that YARN or somebody else has ended is replaced for attempts that wait for its containers."""

from __future__ import annotations

import asyncio
from math import inf
from typing import Any

import msgspec
import pytest

from corral.engines.yarn import job_loops
from corral.engines.yarn.job_loops import JobLoops
from corral.engines.yarn.kind import YarnOptions, settings_of
from corral.engines.yarn.service_spec import shape_of
from corral.engines.yarn.services import Known, Look
from corral.engines.yarn.shared import MOST_RETURNED
from corral.engines.yarn.slots import Attempt, Phase, Service, SlotTable
from corral.kernel.errors import Conflict, Unavailable
from corral.kernel.ids import AttemptId, JobId, job_id
from corral.model.launch import TaskLaunch

JOB = job_id(1, 1)
ATTEMPT = AttemptId(f"{JOB}.0.worker.0.0")


class Made:
    """Services that are only noted; those in `over` have ended."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.deleted: list[str] = []
        self.over: set[str] = set()
        self.refused: list[str] = []
        self.is_away = False
        """Whether YARN does not answer when it is asked for a service."""
        self.keeps: Service | None = None
        """The service whose name is refused, because an earlier server asked for it or has deleted it."""
        self.lists_after = inf
        """How often it is refused before it is listed."""
        self.trouble = ""
        """Why services give no containers."""
        self.known_as = Known.NOTHING
        """What YARN knows of it before."""

    async def make(self, service: Service) -> None:
        if self.is_away:
            self.refused.append(service.name)
            raise Unavailable("hadoop-unreachable", "The ResourceManager does not answer.")
        if self.keeps is not None and service.name == self.keeps.name:
            self.refused.append(service.name)
            raise Conflict("service-exists", "YARN has such a service.")
        self.made.append(service.name)

    async def find(self, name: str) -> Service | None:
        listed = self.keeps is not None and self.keeps.name == name and len(self.refused) >= self.lists_after
        return self.keeps if listed else None

    async def known(self, service: Service) -> Known:
        return self.known_as

    async def look(self, service: Service) -> Look:
        return Look(service.name in self.over, self.trouble)

    async def end_of(self, service: Service) -> str:
        return self.trouble

    async def delete(self, service: Service) -> None:
        self.deleted.append(service.name)


def waits(
    services: Made,
    monkeypatch: pytest.MonkeyPatch,
    shared: str = "",
    there: Service | None = None,
    start_seconds: float = 120.0,
    events: Any = None,
) -> tuple[SlotTable, asyncio.Task[None]]:
    """An attempt that waits for a container, and the loop of its job, or of a `shared` owner that has a service."""
    for name in ("_ENDED_SECONDS", "_SETTLE_SECONDS", "_LOOK_SECONDS"):
        monkeypatch.setattr(job_loops, name, 0.01)
    options = YarnOptions(yarn_resource_managers="http://rm:1", yarn_name_nodes="http://nn:1")
    given, table, unused = settings_of(options, "s", ""), SlotTable(), Any
    settings = msgspec.structs.replace(given, idle_seconds=0.1, start_seconds=start_seconds)
    running: list[asyncio.Task[None]] = []
    loops = JobLoops(
        settings,
        table,
        services,  # type: ignore[arg-type]
        unused,  # type: ignore[arg-type]
        events,
        unused,  # type: ignore[arg-type]
        lambda slot: None,
        lambda work: running.append(asyncio.ensure_future(work)),
    )
    launch = TaskLaunch(attempt=ATTEMPT, command=("true",), user="ada", node="yarn/nm1", env={})
    now = asyncio.get_running_loop().time()
    attempt = Attempt(ATTEMPT, Phase.PENDING, shared=shared, launch=launch, shape=shape_of(launch, "yarn"), since=now)
    table.attempts[ATTEMPT] = attempt
    if there is not None and attempt.shape is not None:
        there.components["small-n0"] = attempt.shape
        there.busy_at = there.prolonged_at = now
        table.services[there.name] = there
    loops.ring(attempt.owner)
    return table, running[0]


async def test_an_attempt_that_waits_for_a_service_that_ended_gets_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    services = Made()
    table, loop = waits(services, monkeypatch)
    await seen(services.made, 1)
    services.over.add(services.made[0])
    await seen(services.made, 2)
    assert services.deleted == services.made[:1], "the one that ended is given up, the new one is not"
    assert [each.name for each in table.services.values()] == services.made[1:]
    loop.cancel()


async def test_a_shared_service_that_has_given_back_enough_ends_though_tasks_wait_for_its_successor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    services, owner = Made(), "shared0123456789abcdef"
    there = Service("corral-s-used-up", JobId(owner), "ada", "default", {}, {"small-n0": 0}, returned=MOST_RETURNED)
    table, loop = waits(services, monkeypatch, owner, there)
    await seen(services.deleted, 1)
    assert services.deleted == ["corral-s-used-up"] and len(services.made) == 1
    assert table.attempts[ATTEMPT].phase is Phase.PENDING, "it still waits"
    assert list(table.services) == services.made, "for the one that has its container"
    loop.cancel()


async def test_a_service_that_an_earlier_server_asked_for_is_taken_over_though_yarn_lists_it_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    services = Made()
    services.keeps, services.lists_after = Service("corral-s-1", JOB, "ada", "default", {}, {}), 3
    monkeypatch.setattr(job_loops, "service_name", lambda settings, job, number: f"corral-s-{number}")
    table, loop = waits(services, monkeypatch)
    async with asyncio.timeout(60):
        while not table.services:
            await asyncio.sleep(0.01)
    assert list(table.services) == ["corral-s-1"] and services.refused == ["corral-s-1"] * 3
    loop.cancel()


async def test_the_name_of_a_deleted_service_is_given_up_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    services = Made()
    services.keeps = Service("corral-s-1", JOB, "ada", "default", {}, {})
    monkeypatch.setattr(job_loops, "service_name", lambda settings, job, number: f"corral-s-{number}")
    monkeypatch.setattr(job_loops, "_NAME_SECONDS", 0.05)
    _, loop = waits(services, monkeypatch)
    await seen(services.made, 1)
    assert services.made[0] == "corral-s-2"
    loop.cancel()


@pytest.mark.parametrize("known", [Known.ASKED_FOR, Known.LIVE])
async def test_a_service_that_yarn_describes_and_lists_late_gets_no_second_one_beside_it(
    monkeypatch: pytest.MonkeyPatch, known: Known
) -> None:
    services = Made()
    services.keeps, services.lists_after, services.known_as = (
        Service("corral-s-1", JOB, "ada", "default", {}, {}),
        6,
        known,
    )
    monkeypatch.setattr(job_loops, "service_name", lambda settings, job, number: f"corral-s-{number}")
    monkeypatch.setattr(job_loops, "_NAME_SECONDS", 0.0)
    table, loop = waits(services, monkeypatch)
    await seen(services.refused, 3)
    trouble = table.attempts[ATTEMPT].trouble
    assert trouble is not None and "does not list it yet; it is not asked for a second one" in trouble.message
    async with asyncio.timeout(60):
        while not table.services:
            await asyncio.sleep(0.01)
    assert list(table.services) == ["corral-s-1"]
    assert services.refused == ["corral-s-1"] * 6 and not services.made and not services.deleted
    loop.cancel()


@pytest.mark.parametrize(("known", "start_seconds"), [(Known.ENDED, 120.0), (Known.ASKED_FOR, 0.05)])
async def test_a_described_service_that_is_dead_is_deleted_before_another_one_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, known: Known, start_seconds: float
) -> None:
    services = Made()
    services.keeps, services.known_as = Service("corral-s-1", JOB, "ada", "default", {}, {}), known
    monkeypatch.setattr(job_loops, "service_name", lambda settings, job, number: f"corral-s-{number}")
    table, loop = waits(services, monkeypatch, start_seconds=start_seconds)
    table.attempts[ATTEMPT].since += 1000.0  # a retry, whose own start is not late
    await seen(services.made, 1)
    assert (services.deleted, services.made) == (["corral-s-1"], ["corral-s-2"])
    loop.cancel()


@pytest.mark.parametrize(
    ("is_away", "known", "deleted"),
    [
        (False, Known.ASKED_FOR, ["corral-s-1"]),
        (False, Known.LIVE, ["corral-s-1"]),
        (True, Known.LIVE, ["corral-s-1"]),
        (True, Known.NOTHING, []),
    ],
)
async def test_a_service_that_yarn_may_be_making_when_the_last_attempt_gives_up_is_deleted(
    monkeypatch: pytest.MonkeyPatch, is_away: bool, known: Known, deleted: list[str]
) -> None:
    """Nothing else would end it before its lifetime has passed: no server knows it."""
    services = Made()
    services.keeps, services.known_as, services.is_away = (
        Service("corral-s-1", JOB, "ada", "default", {}, {}),
        known,
        is_away,
    )
    monkeypatch.setattr(job_loops, "service_name", lambda settings, job, number: f"corral-s-{number}")
    monkeypatch.setattr(job_loops, "_NAME_SECONDS", 0.05)
    table, loop = waits(services, monkeypatch, start_seconds=1000.0)
    await seen(services.refused, 1)
    del table.attempts[ATTEMPT]
    async with asyncio.timeout(60):
        await loop
    assert services.deleted == deleted and not services.made and not table.services


async def seen(names: list[str], count: int) -> None:
    """Wait until so many services were made."""
    async with asyncio.timeout(60):
        while len(names) < count:
            await asyncio.sleep(0.01)
