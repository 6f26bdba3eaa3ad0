"""A service that YARN gave up is replaced while tasks wait for its containers, long before their start is given up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from corral.engines.yarn.cluster_watch import ClusterWatch
from corral.engines.yarn.hadoop_rest import HadoopRest
from corral.engines.yarn.kind import YarnOptions, settings_of
from corral.engines.yarn.service_spec import SlotShape
from corral.engines.yarn.services import Known, Services
from corral.engines.yarn.slot_tokens import SlotTokens
from corral.engines.yarn.slots import Attempt, Phase, Service, Slot, SlotTable
from corral.kernel.errors import NotFound, Unavailable
from corral.kernel.ids import AttemptId, JobId, job_id
from tests.engines.yarn.test_names_and_refusals import WHERE

SETTINGS = settings_of(YarnOptions(**WHERE), "s", "")
JOB = job_id(1_700_000_000_000, 1)
SHAPE = SlotShape("main", "nm1", 1000, 2**27, 0)


class Listed:
    """YARN's list of live services."""

    def __init__(self, *names: str) -> None:
        self.names, self.asked = frozenset(names), 0

    async def live_names(self) -> frozenset[str]:
        self.asked += 1
        return self.names


def watch(table: SlotTable, live: Any) -> tuple[ClusterWatch, list[JobId]]:
    rung: list[JobId] = []
    made = ClusterWatch(SETTINGS, live, live, table, lambda: None, lambda key: None, rung.append)
    return made, rung


def waiting(name: str, made_at: float) -> SlotTable:
    """A service that a task waits for."""
    table = SlotTable()
    attempt = AttemptId(f"{JOB}.0.main.0.0")
    table.services[name] = Service(
        name, JobId(JOB), "ada", "default", {"main-n0": SHAPE}, {"main-n0": 1}, prolonged_at=made_at
    )
    table.attempts[attempt] = Attempt(attempt, Phase.PENDING, shape=SHAPE)
    return table


async def test_a_service_that_yarn_lists_no_more_is_ended_and_its_job_looked_at() -> None:
    now = asyncio.get_running_loop().time()
    table = waiting("gone", now - 30)
    looks, rung = watch(table, Listed("another"))
    await looks._look_for_dead_services()
    assert table.services["gone"].ending
    assert rung == [JOB]


async def test_a_service_that_lives_is_new_or_has_a_slot_is_left_alone() -> None:
    now = asyncio.get_running_loop().time()
    for name, age, slots in (("lives", 30.0, 0), ("gone", 5.0, 0), ("gone", 30.0, 1)):
        table = waiting(name, now - age)
        if slots:
            table.add_slot(Slot(name, JobId(JOB), "main-n0", "main-n0-0", "container_1", "h"))
        looks, rung = watch(table, Listed("lives"))
        await looks._look_for_dead_services()
        assert not table.services[name].ending
        assert not rung


async def test_yarn_is_asked_at_most_once_in_ten_seconds() -> None:
    now = asyncio.get_running_loop().time()
    live = Listed("lives")
    looks, _ = watch(waiting("lives", now - 30), live)
    for _ in range(3):
        await looks._look_for_dead_services()
    assert live.asked == 1


async def test_a_container_of_a_lost_node_that_yarn_still_lists_as_failed_is_gone(monkeypatch: Any) -> None:
    containers = [{"id": "container_1", "state": "FAILED", "bare_host": "h"}, {"id": "container_2", "state": "READY"}]
    resource = {"cpus": 1, "memory": "128"}
    component = {"name": "main-n0", "number_of_containers": 2, "resource": resource, "containers": containers}

    async def answer(self: HadoopRest, method: str, path: str, **_: Any) -> Any:
        return {"name": "s", "components": [component]}

    monkeypatch.setattr(HadoopRest, "ask", answer)
    rest = HadoopRest("ResourceManager", ["http://rm:8088"], "me")
    services = Services(SETTINGS, rest, rest, SlotTokens(b"k" * 32))
    (service,) = waiting("s", 0.0).services.values()
    assert await services.containers(service) == {"container_2"}


async def test_a_service_is_found_though_the_masters_of_others_answer_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    described: dict[str, Any] = {"components": []}
    asked: list[str] = []

    async def ask(self: HadoopRest, method: str, path: str, **_: Any) -> Any:
        asked.append(path)
        if path == "/ws/v1/cluster/apps":
            return {"apps": {"app": [{"name": f"corral-s-{job}-1", "user": "ada"} for job in ("other", "mine", "new")]}}
        if path == "/app/v1/services/corral-s-mine-1":
            return described
        if path == "/app/v1/services/corral-s-new-1":
            raise NotFound("hadoop-not-found", "There is no such service.")
        raise Unavailable("hadoop-unreachable", "Its master refuses the connection.")

    monkeypatch.setattr(HadoopRest, "ask", ask)
    yarn = HadoopRest("ResourceManager", ["http://rm:8088"], "me")
    services = Services(SETTINGS, yarn, yarn, SlotTokens(b"k" * 32))
    found = await services.find("corral-s-mine-1")
    assert found is not None and (found.job, found.user) == (JobId("mine"), "ada")
    assert "/app/v1/services/corral-s-other-1" not in asked
    assert await services.find("corral-s-gone-1") is None
    with pytest.raises(Unavailable, match="does not describe it yet"):
        await services.find("corral-s-new-1")


APPLICATION = "application_1_1"


@pytest.mark.parametrize(
    ("answer", "known"),
    [
        (None, Known.NOTHING),
        ({"state": "STOPPED"}, Known.ASKED_FOR),
        ({"state": "ACCEPTED", "id": APPLICATION}, Known.LIVE),
        ({"state": "STABLE", "id": APPLICATION}, Known.LIVE),
        ({"state": "STOPPED", "id": APPLICATION}, Known.ENDED),
        ({"state": "FAILED", "id": APPLICATION}, Known.ENDED),
    ],
)
async def test_what_yarn_knows_of_a_name_that_it_does_not_list_is_told_by_its_description(
    monkeypatch: pytest.MonkeyPatch, answer: dict[str, str] | None, known: Known
) -> None:
    """As Hadoop 3.4.2 answers: it calls a service STOPPED that has no application yet."""

    async def ask(self: HadoopRest, method: str, path: str, **terms: Any) -> Any:
        assert (method, path, terms) == ("GET", "/app/v1/services/s", {"user": "ada"})
        if answer is None:
            raise NotFound("hadoop-refused", "Service s not found")
        return {"name": "s", "components": [], **answer}

    monkeypatch.setattr(HadoopRest, "ask", ask)
    yarn = HadoopRest("ResourceManager", ["http://rm:8088"], "me")
    services = Services(SETTINGS, yarn, yarn, SlotTokens(b"k" * 32))
    assert await services.known(Service("s", JOB, "ada", "default", {}, {})) is known
