"""A job that no machine could ever hold is refused at submission, and no other."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.kernel.ids import JobId, TaskKey
from corral.model.inventory import Device, Node
from corral.model.request_builder import gang_terms
from corral.service.jobs.capacity import Capacity, capacity_obstacle
from corral.spec.job import UnifiedJob
from corral.spec.job_reader import load_job
from tests.examples import examples
from tests.scheduler.machines import cluster, place

NODES = (
    Node("local/n1", devices=tuple(Device(at, f"d{at}") for at in range(4)), cpu_millis=8000, memory_bytes=2**33,
         resources={"ports": 10, "key": 2}),
    Node("local/n2", cpu_millis=8000, memory_bytes=2**33),
)  # fmt: skip


@pytest.mark.parametrize(
    ("role", "said"),
    [
        ("resources: {devices: 0.5}, replicas: 8", ""),
        ("resources: {devices: 0.5}, replicas: 9", "a part of 1 device"),
        ("resources: {devices: {bitmap: 0xf}}", ""),
        ("resources: {devices: {bitmap: 0x1f}}", "the devices 0, 1, 2, 3, 4"),
        ("resources: {devices: {ids: [1], share: {computePercent: 25}}}, replicas: 4", ""),
        ("resources: {other: {key: 1}}, replicas: 2", ""),
        ("resources: {other: {key: 1}}, replicas: 3", "room for 2"),
        ("resources: {other: {licence: 1}}", "room for 0"),
        ("ports: {http: 10}", ""),
        ("ports: {http: 11}, replicas: 8", ""),
        ("resources: {disk: 1Ti}", ""),
    ],
)
def test_only_what_cannot_be_is_refused(role: str, said: str) -> None:
    found = capacity_obstacle(load_job(f"name: j\nroles: {{w: {{command: x, {role}}}}}\n"), Capacity(NODES))
    assert (said in found) if said else found == ""


MANY = tuple(
    Node(f"local/n{at}", devices=tuple(Device(i, f"n{at}:{i}") for i in range(2 + at % 2)), cpu_millis=4000,
         memory_bytes=2**33, labels={"host": f"n{at}", "zone": "ab"[at % 2]})
    for at in range(10)
)  # fmt: skip


@pytest.mark.parametrize(
    ("role", "said"),
    [
        ("resources: {devices: 1}, replicas: 25", ""),
        ("resources: {devices: 1}, replicas: 26", "room for 25"),
        ("resources: {devices: 3}, replicas: 5", ""),
        ("resources: {devices: 3}, replicas: 6", "room for 5"),
        ("resources: {devices: 1}, nodeSelector: {zone: a}, replicas: 11", "room for 10"),
        ("resources: {devices: 1}, nodeSelector: {host: n3}, replicas: 4", "room for 3"),
        ("resources: {devices: 1}, nodeSelector: {host: n10}", "there are none"),
        ("resources: {devices: {ids: ['2']}}, replicas: 5", ""),
        ("resources: {devices: {ids: ['2']}}, replicas: 6", "room for 5"),
        ("resources: {devices: {ids: ['n3:2']}}", ""),
        ("resources: {devices: {ids: ['n2:2']}}", "room for 0"),
        ("resources: {devices: {ids: ['n3:1', 'n5:1']}}", "room for 0"),
    ],
)
def test_nodes_that_count_alike_are_counted_once_and_labels_and_ids_still_tell_them_apart(role: str, said: str) -> None:
    capacity = Capacity(MANY)
    for _ in range(2):
        found = capacity_obstacle(load_job(f"name: j\nroles: {{w: {{command: x, {role}}}}}\n"), capacity)
        assert (said in found) if said else found == ""


def job(*devices: str, more: str = "") -> UnifiedJob:
    """A job whose roles have these devices (and replicas and labels)."""
    roles = "".join(f"  r{at}: {{command: x, resources: {{devices: {each}}}}}\n" for at, each in enumerate(devices))
    return load_job(f"name: j\nroles:\n{roles}{more}")


def machine(name: str, *models: str, broken: int = 0, **labels: str) -> Node:
    """A node with devices of these models, 8 GiB each, and `broken` more that are unhealthy."""
    devices = [Device(at, f"{name}:{at}", model=model, memory_bytes=2**33) for at, model in enumerate(models)]
    devices += [Device(len(models) + at, f"{name}:broken{at}", healthy=False) for at in range(broken)]
    return Node(f"local/{name}", devices=tuple(devices), cpu_millis=64_000, memory_bytes=2**40, labels=labels)


def placed(wanted: UnifiedJob, *nodes: Node) -> bool:
    """Whether the scheduler places the job on these nodes when they are empty."""
    tasks = [TaskKey(role.name, index) for role in wanted.spec.roles for index in range(wanted.replicas_of(role.name))]
    request = gang_terms(wanted).request(JobId("j"), 0, tasks, user="ann", created_at=0.0)
    return place(cluster(*nodes), request) is not None


A, B = "model: a", "model: b"
HALF = "count: 1, share: {computePercent: 50}"
ONE = (machine("n1", "a"),)
TWO_MODELS = (machine("n1", "a", "b"),)
TWO_ZONES = (machine("n1", "a", zone="x"), machine("n2", "a", zone="y"))


@pytest.mark.parametrize(
    ("nodes", "wanted"),
    [
        (ONE, job("0.5", "0.5")),
        (ONE, job("0.6", "0.4")),
        (ONE, job("0.3", "0.3", "0.4")),
        (ONE, job(f"{{{HALF}, {A}}}", f"{{{HALF}}}")),
        (ONE, job("{share: {computePercent: 70, memoryPercent: 10}}", "{share: {computePercent: 30, memoryPercent: 90}}")),
        (TWO_MODELS, job(f"{{{HALF}, {A}}}", f"{{{HALF}, {A}}}", f"{{{B}, count: 1}}")),
        (TWO_MODELS, job("0.5", "1", "0.5")),
    ],
)  # fmt: skip
def test_roles_whose_tasks_fit_on_one_device_together_are_not_refused(
    nodes: tuple[Node, ...], wanted: UnifiedJob
) -> None:
    assert placed(wanted, *nodes)
    assert capacity_obstacle(wanted, Capacity(nodes)) == ""


@pytest.mark.parametrize(
    ("nodes", "wanted", "count"),
    [
        (ONE, job("0.5", "0.6"), "2 devices at once, and 1 healthy device is there"),
        (ONE, job("0.5", "1"), "2 devices at once, and 1 healthy device is there"),
        (ONE, job("1", "1"), "2 devices at once, and 1 healthy device is there"),
        (ONE, job("0.5", "0.5", more="sharing: {oneTaskPerNode: true}\n"), "2 devices at once, and 1"),
        ((machine("n1", "a", broken=1),), job("0.5", "1"), "2 devices at once, and 1 healthy device is there"),
        (TWO_MODELS, job("0.6", "0.6", "0.6"), "3 devices at once, and 2 healthy devices are there"),
        (TWO_MODELS, job("0.6", "0.3", "0.6", "1"), "3 devices at once, and 2 healthy devices are there"),
        (TWO_MODELS, job(f"{{{HALF}, {A}}}", f"{{{HALF}, {B}}}", "1"), "3 devices at once, and 2"),
        (TWO_MODELS, job("{share: {computePercent: 10, memoryPercent: 90}}", "{share: {memoryPercent: 20}}", "1"),
         "3 devices at once, and 2"),
    ],
)  # fmt: skip
def test_roles_that_need_more_devices_together_than_there_are_are_refused(
    nodes: tuple[Node, ...], wanted: UnifiedJob, count: str
) -> None:
    assert not placed(wanted, *nodes)
    assert f"The job wants {count}" in capacity_obstacle(wanted, Capacity(nodes))


def test_roles_for_different_nodes_share_no_device() -> None:
    roles = "".join(
        f"  {name}: {{command: x, resources: {{devices: 0.5}}, nodeSelector: {{zone: {zone}}}}}\n"
        for name, zone in (("w", "x"), ("v", "y"))
    )
    both = load_job(f"name: j\nroles:\n{roles}")
    assert placed(both, *TWO_ZONES)
    assert capacity_obstacle(both, Capacity(TWO_ZONES)) == ""
    third = load_job(f"name: j\nroles:\n{roles}  u: {{command: x, resources: {{devices: 1}}}}\n")
    assert not placed(third, *TWO_ZONES)
    assert capacity_obstacle(third, Capacity(TWO_ZONES)) == (
        "The job wants 3 devices at once, and 2 healthy devices are there."
    )


def test_a_device_holds_more_than_a_hundred_tasks_that_want_little_of_its_memory() -> None:
    many = load_job(
        "name: j\nroles: {w: {command: x, replicas: 200, resources: {cpu: 100m, devices: {share: {memory: 40Mi}}}}}\n"
    )
    assert placed(many, *ONE)
    assert capacity_obstacle(many, Capacity(ONE)) == ""


ROLES = st.lists(
    st.tuples(
        st.sampled_from(("0.2", "0.5", "0.6", "1", "2", f"{{{HALF}, {A}}}", f"{{count: 1, {B}}}",
                         "{ids: ['0'], share: {computePercent: 40}}", "{share: {computePercent: 10, memoryPercent: 60}}",
                         "{share: {memory: 3Gi}}")),
        st.integers(1, 3),
        st.sampled_from(("{}", "{zone: x}", "{zone: y}")),
    ),
    min_size=1,
    max_size=4,
)  # fmt: skip
MACHINES = st.lists(
    st.tuples(st.lists(st.sampled_from("ab"), max_size=3), st.sampled_from("xy")), min_size=1, max_size=3
)


@settings(max_examples=examples(150), deadline=None)
@given(ROLES, MACHINES, st.booleans())
def test_no_job_is_refused_that_the_scheduler_places(
    roles: list[tuple[str, int, str]], machines: list[tuple[list[str], str]], alone: bool
) -> None:
    nodes = [machine(f"n{at}", *models, zone=zone) for at, (models, zone) in enumerate(machines)]
    lines = "".join(
        f"  r{at}: {{command: x, replicas: {count}, resources: {{devices: {devices}}}, nodeSelector: {selector}}}\n"
        for at, (devices, count, selector) in enumerate(roles)
    )
    wanted = load_job(f"name: j\nroles:\n{lines}sharing: {{oneTaskPerNode: {str(alone).lower()}}}\n")
    if placed(wanted, *nodes):
        assert capacity_obstacle(wanted, Capacity(nodes)) == ""
