"""Small jobs of one user in one YARN service: who shares it, what a slot of it learns, a restart, and its end."""

from __future__ import annotations

import functools
import itertools
import time
from typing import Any

import pytest

from corral.engines.yarn.inventory import NodeFacts
from corral.engines.yarn.kind import YarnOptions, settings_of
from corral.engines.yarn.service_spec import shape_of
from corral.engines.yarn.settings import YarnSettings
from corral.engines.yarn.shared import is_shared, shapes_of_all_nodes, shared_by, shared_shape
from corral.engines.yarn.slot_messages import SlotHello, SlotState
from corral.engines.yarn.slots import Attempt, Phase, Service, Slot, SlotTable
from corral.kernel.errors import NotFound, Unauthenticated
from corral.kernel.ids import AttemptId, JobId, job_id
from corral.model.inventory import Device
from corral.model.launch import GangPart, TaskLaunch
from tests.engines.yarn.harness import Places, YarnPlace
from tests.engines.yarn.test_services import apps, until

MB = 2**20
JOBS = itertools.count(1)
ALONE = {
    "a gang": {"gang": (GangPart("main", "yarn/nm1", 2),)},
    "a device": {"devices": (Device(0, "yarn/nm1:0", "gpu"),)},
    "another resource": {"resources": {"example.com/thing": 1}},
    "too much memory": {"memory_bytes": 257 * MB},
}


def settings(**fields: Any) -> YarnSettings:
    where = {"yarn_resource_managers": "http://rm:1", "yarn_name_nodes": "http://nn:1"}
    return settings_of(YarnOptions(**{**where, "yarn_share_mb": 256, **fields}), "s", "")


def small(user: str = "ada", node: str = "nm1", command: tuple[str, ...] = ("true",), **fields: Any) -> TaskLaunch:
    """The only task of a job of its own."""
    attempt = AttemptId(f"{job_id(int(time.time() * 1000), next(JOBS))}.0.{user}s.0.0")
    given = {"cpu_millis": 500, "memory_bytes": 100 * MB, "env": {}, **fields}
    return TaskLaunch(attempt=attempt, user=user, node=f"yarn/{node}", command=command, **given)


def owner(launch: TaskLaunch, known: YarnSettings) -> str:
    return shared_by(launch, shape_of(launch, "yarn"), known)


def test_jobs_of_one_account_queue_and_size_have_the_same_services_and_others_have_not() -> None:
    known = settings(yarn_queues="*=*")
    first = owner(small(queue="a"), known)
    assert is_shared(JobId(first)) and owner(small(node="nm2", queue="a"), known) == first
    others = [small("bob", queue="a"), small(queue="b"), small(queue="a", memory_bytes=101 * MB)]
    assert len({first, *(owner(each, known) for each in others)}) == 4


@pytest.mark.parametrize("fields", ALONE.values(), ids=ALONE)
def test_other_jobs_have_a_service_of_their_own(fields: dict[str, Any]) -> None:
    assert owner(small(**fields), settings()) == ""


def test_by_default_no_service_is_shared() -> None:
    assert owner(small(), settings(yarn_share_mb=0)) == ""


def test_a_task_whose_node_yarn_chooses_has_a_service_of_its_own() -> None:
    launch = small()
    shape = shape_of(launch, "yarn", {"nm1": NodeFacts("nm1", pinned=False, partition="", devices=0)})
    assert shared_by(launch, shape, settings()) == ""


def test_a_shared_service_can_have_containers_on_each_pinned_node() -> None:
    shape = shared_shape(shape_of(small(), "yarn"))
    nodes = {name: NodeFacts(name, name != "nm4", "gold" if name == "nm3" else "", 0) for name in ("nm1", "nm3", "nm4")}
    found = shapes_of_all_nodes({shape: 2}, nodes)
    assert {(each.node, each.partition): count for each, count in found.items()} == {("nm1", ""): 2, ("nm3", "gold"): 0}
    assert {each.role for each in found} == {"small"}


class Counted(SlotTable):
    """A table that counts how often it looks for a slot's task."""

    looks = 0

    def has_task(self, slot: Slot) -> bool:
        self.looks += 1
        return super().has_task(slot)


def test_what_a_service_with_many_nodes_needs_is_counted_with_one_look_at_each_slot() -> None:
    table, first = Counted(), shared_shape(shape_of(small(), "yarn"))
    shapes = {f"small-n{number}": first._replace(node=f"nm{number}") for number in range(200)}
    service = Service("s", JobId("shared1"), "ada", "default", shapes, dict.fromkeys(shapes, 0))
    for number in range(400):
        slot = Slot("s", service.job, f"small-n{number % 100}", f"i{number}", f"c{number}", "host")
        slot.releasing = number % 100 == 7
        table.slots[slot.key] = slot
        if number % 100 < 3 and number < 200:
            name = AttemptId(f"{number}.0.main.0.0")
            table.attempts[name] = Attempt(name, Phase.STARTED)
            slot.attempts.add(name)
    found = table.needed(service, {shapes["small-n1"]: 5, shapes["small-n150"]: 1, shapes["small-n2"]: 1, None: 9})
    assert table.looks <= 400
    # two with a task and two idle ones of each of the first three, four idle ones of the others
    assert [found[f"small-n{number}"] for number in (0, 1, 2, 3, 7, 150, 151)] == [4, 7, 4, 4, 0, 1, 0]


@pytest.mark.timeout(600)
async def test_two_small_jobs_of_one_user_run_in_one_service_that_outlives_the_server_and_ends_when_it_is_idle(
    places: Places,
) -> None:
    place = places(share_memory_bytes=256 * MB, idle_seconds=10.0)
    first, second = small(command=("sleep", "1000")), small(node="nm2", command=("sleep", "1000"))
    async with place.open() as opened:
        await opened.engine.start(first)
        await opened.started(first.attempt)
        await opened.engine.start(second)
        await opened.started(second.attempt)
        (app,) = apps(place)
        assert nodes_of(place, app["name"]) == {"nm1": 1, "nm2": 1}
        third = small("bob", command=("sleep", "1000"))
        await opened.engine.start(third)
        await opened.started(third.attempt)
        of_bob = next(each for each in apps(place) if each["id"] != app["id"])
        await learns_nothing(opened.raw, of_bob["name"], app["name"], first)
        opened.raw.live_jobs(frozenset(JobId(each.attempt.partition(".")[0]) for each in (first, second, third)))
    async with place.open() as opened:
        assert opened.raw.attempts() == {first.attempt, second.attempt, third.attempt}
        for launch in (first, second, third):
            key = opened.raw._table.attempts[launch.attempt].slot
            await until(functools.partial(opened.raw._table.slots.get, key))
            await opened.engine.stop(launch.attempt, grace_seconds=0, signal="KILL")
            assert (await opened.exited(launch.attempt)).code == 137
        await until(lambda: not apps(place))


async def learns_nothing(engine: Any, intruder: str, other: str, launch: TaskLaunch) -> None:
    """A container of another user's service names the service, or the container, of a task that is not its own."""
    token = engine._tokens.of_service(intruder)
    container = engine._table.attempts[launch.attempt].container
    component = next(iter(engine._table.services[intruder].components))
    with pytest.raises(Unauthenticated):
        await engine.hello(token, SlotHello(other, f"{component}-0", container, "127.0.0.1"))
    given = await engine.hello(token, SlotHello(intruder, f"{component}-9", container, "127.0.0.1"))
    assert await engine.sync(given, SlotState({}, 0.0)) == {}
    with pytest.raises(NotFound):
        await engine.append_log(given, launch.attempt, "all", 0, b"forged")


def nodes_of(place: YarnPlace, service: str) -> dict[str, int]:
    """How many containers a service is asked for on each node."""
    told = place.yarn.service(service)
    found = {}
    for each in told["components"]:
        (constraint,) = each["placement_policy"]["constraints"]
        ((node,),) = constraint["node_attributes"].values()
        found[node] = int(each["number_of_containers"])
    return found
