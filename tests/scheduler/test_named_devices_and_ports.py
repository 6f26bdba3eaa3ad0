"""A device bitmask is honoured exactly (Y2); ports are counted on each node and given to one task only (Y8)."""

from __future__ import annotations

import random

from corral.engines.local.ports import PortLedger
from corral.frameworks import port_counts
from corral.kernel.ids import JobId, TaskKey
from corral.model.launch import PortRequest
from corral.model.request_builder import gang_terms
from corral.model.requests import GangRequest
from corral.scheduler import TasksReleased, gang_placed
from corral.spec.job_reader import load_job
from tests.reserved import first_of_free
from tests.scheduler.machines import cluster, node, occupy, place


def asked(job: str, fields: str, replicas: int = 1, *, framework: str = "shell") -> GangRequest:
    """The request of a job file with one role and these fields."""
    document = load_job(
        f"name: {job}\nframework: {framework}\nroles: {{w: {{command: x, replicas: {replicas}, {fields}}}}}\n"
    )
    tasks = [TaskKey("w", at) for at in range(replicas)]
    return gang_terms(document, port_counts(document)).request(JobId(job), 0, tasks, user="ada", created_at=0.0)


def test_y2_the_bits_of_a_bitmap_have_to_be_free_on_one_node() -> None:
    target = cluster(node("n1", 8), node("n2", 8), node("n3", 4))
    occupy(target, "n1", 4)
    request = asked("a", "resources: {devices: {count: 4, bitmap: 0x33}}")
    placement = place(target, request)
    assert placement is not None
    assert (placement.tasks[0].node, placement.tasks[0].devices) == ("local/n2", (0, 1, 4, 5))
    occupy(target, "n2", 1)
    assert place(target, request) is None, "six other devices of n2 are free, and none of them will do"


def test_y2_every_task_has_the_bits_of_a_node_of_its_own() -> None:
    target = cluster(*(node(f"n{at}", 8) for at in range(3)))
    placement = place(target, asked("a", "resources: {devices: {bitmap: 0x33}}", 3))
    assert placement is not None
    assert sorted((task.node, task.devices) for task in placement.tasks) == [
        (f"local/n{at}", (0, 1, 4, 5)) for at in range(3)
    ]
    assert place(target, asked("a", "resources: {devices: {bitmap: 0x33}}", 4)) is None


def test_y2_a_bitmap_of_nothing_is_by_count() -> None:
    target = cluster(node("n1", 4))
    occupy(target, "n1", 0)
    placement = place(target, asked("a", 'resources: {devices: {count: 2, bitmap: "0x0"}}'))
    assert placement is not None
    assert placement.tasks[0].devices == (2, 3)


def test_y8_a_node_gives_no_more_ports_than_it_has() -> None:
    target = cluster(node("n1", 0, resources={"ports": 5}), node("n2", 0, resources={"ports": 2}))
    two = asked("a", "ports: {http: 1, admin: 1}", 3)
    placement = place(target, two)
    assert placement is not None
    assert sorted(task.node for task in placement.tasks) == ["local/n1", "local/n1", "local/n2"]
    target.apply(gang_placed(two, placement, 0.0))
    assert place(target, asked("b", "ports: {http: 2}")) is None
    assert place(target, asked("b", "ports: {http: 1}")) is not None
    target.apply(TasksReleased(JobId("a"), (placement.tasks[-1].key,)))
    assert place(target, asked("b", "ports: {http: 2}")) is not None
    assert target.consistent()


def test_y8_nodes_that_count_no_ports_give_as_many_as_are_asked_for() -> None:
    assert place(cluster(node("n1", 0)), asked("a", "ports: {http: 900}", 4)) is not None


def test_y8_the_port_of_a_rendezvous_counts_too() -> None:
    target = cluster(node("n1", 0, resources={"ports": 2}))
    one = asked("a", "ports: {http: 1}", framework="pytorch")
    assert [role.resources for role in one.roles] == [{"ports": 2}]
    placement = place(target, one)
    assert placement is not None
    target.apply(gang_placed(one, placement, 0.0))
    assert place(target, asked("b", "", framework="shell")) is not None
    assert place(target, asked("b", "", framework="pytorch")) is None
    assert place(target, asked("b", "ports: {rendezvous: 1}", framework="pytorch")) is None
    target.apply(TasksReleased(JobId("a"), (TaskKey("w", 0),)))
    assert place(target, asked("b", "", framework="pytorch")) is not None


def test_y8_no_two_tasks_ever_have_the_same_port() -> None:
    """The scheduler counts ports and the engine numbers them: while tasks come and go every port has one owner."""
    first = first_of_free(12)
    source, ledger = random.Random(8), PortLedger(first, first + 11)
    held: dict[str, dict[str, tuple[int, ...]]] = {}
    target = cluster(node("n1", 0, resources={"ports": len(ledger)}))
    for number in range(60):
        request = asked(f"j{number}", f"ports: {{a: {source.randint(1, 3)}, b: 1}}")
        placement = place(target, request)
        if placement is None:
            job = source.choice(sorted(held))
            ledger.release(held.pop(job))
            target.apply(TasksReleased(JobId(job), (TaskKey("w", 0),)))
            continue
        target.apply(gang_placed(request, placement, 0.0))
        count = request.roles[0].resources["ports"] - 1
        held[request.job] = ledger.take([PortRequest("a", count), PortRequest("b")])
        given = [port for ports in held.values() for numbers in ports.values() for port in numbers]
        assert len(given) == len(set(given)) <= len(ledger)
    assert len(held) < 50
