"""Rows Y1, Y2, Y4, Y5, Y8 and Y9 of scheduling.md on nodes as a ResourceManager lists them, without a daemon."""

from __future__ import annotations

import random
import socket
from collections.abc import Mapping
from typing import Any

import pytest

from corral.engines.yarn.host_ports import HostPorts
from corral.engines.yarn.inventory import NodeFacts, exclusive_labels_of, facts_of, inventory_of, nodes_of
from corral.engines.yarn.kind import YarnKind, YarnOptions, settings_of
from corral.engines.yarn.orders import check_level
from corral.engines.yarn.service_spec import service_of, shape_of
from corral.engines.yarn.slot_grants import SlotGrants
from corral.engines.yarn.slot_messages import AttemptReport
from corral.engines.yarn.slots import Attempt, Phase, Slot, SlotTable, job_of
from corral.kernel.errors import InvalidInput, Unavailable
from corral.kernel.ids import AttemptId, JobId, job_id
from corral.model.inventory import Device, Inventory
from corral.model.launch import GangPart, PortRequest, TaskLaunch
from corral.model.requests import DeviceRequest, NodeRules, Toleration
from corral.runtime.slot_attempt import _free_ports
from corral.scheduler import Cluster, NodesSeen, gang_placed
from tests.engines.yarn.test_names_and_refusals import WHERE, node
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, place, role

SETTINGS = settings_of(YarnOptions(**WHERE, yarn_ports="20000-20099"), "s", "")
JOB = job_id(1_700_000_000_000, 1)


def listed(*nodes: Mapping[str, Any], **fields: Any) -> Inventory:
    """The inventory of nodes that a ResourceManager lists."""
    return inventory_of(nodes_of({"nodes": {"node": list(nodes)}}), SETTINGS, {}, {}, **fields)


def cluster(inventory: Inventory) -> Cluster:
    made = Cluster()
    made.apply(NodesSeen(inventory))
    return made


def without_attribute(name: str) -> dict[str, Any]:
    return {**node(name, used_gpus=0), "nodeAttributesInfo": None}


def attempt(index: int) -> AttemptId:
    return AttemptId(f"{JOB}.0.main.{index}.0")


def launch(index: int, **fields: Any) -> TaskLaunch:
    given = {"attempt": attempt(index), "user": "ada", "node": "yarn/nm1", "command": ("true",), "env": {}}
    return TaskLaunch(**{**given, **fields})


def slot(host: str = "host-nm1", container: str = "container_1") -> Slot:
    return Slot("s", JobId(JOB), "main-n0", "main-n0-0", container, host)


def test_y1_a_count_of_devices_is_given_from_one_node() -> None:
    target = cluster(listed(node("nm1", used_gpus=2), node("nm2", used_gpus=0)))
    found = place(target, gang("a", role(1, 3)))
    assert found is not None
    assert (found.tasks[0].node, len(found.tasks[0].devices)) == ("yarn/nm2", 3)
    assert place(target, gang("a", role(1, 5))) is None


def test_y2_named_devices_are_given_only_where_they_are_free() -> None:
    """A bitmap is these ids (`tests/scheduler/test_named_devices_and_ports.py`)."""
    target = cluster(listed(node("nm1", used_gpus=1), node("nm2", used_gpus=0)))
    found = place(target, gang("a", role(ask=DeviceRequest(2, ids=("0", "3")))))
    assert found is not None
    assert (found.tasks[0].node, found.tasks[0].devices) == ("yarn/nm2", (0, 3))


def test_y4_of_two_gangs_that_need_all_devices_one_runs_and_the_other_holds_nothing() -> None:
    life = Life(listed(node("nm1", used_gpus=0), node("nm2", used_gpus=0)).nodes)
    life.submit(gang("a", role(8, 1)), gang("b", role(8, 1), at=1.0))
    life.cycle()
    assert set(life.running) == {"a"}
    assert not life.cluster.holds(JobId("b"))


def test_y5_roles_have_components_of_their_own_that_change_their_size() -> None:
    nodes = {"nm1": NodeFacts("nm1", True, "", 4)}
    shapes = [
        shape_of(launch(at, attempt=AttemptId(f"{JOB}.0.{name}.{at}.0")), "yarn", nodes)
        for at, name in enumerate(("ps", "worker"))
    ]
    document = service_of(SETTINGS, "s", "default", {f"{each.role}-n0": (each, 1) for each in shapes}, {})
    assert [(each["name"], each["restart_policy"]) for each in document["components"]] == [
        ("ps-n0", "ALWAYS"),
        ("worker-n0", "ALWAYS"),
    ], "YARN changes the number of containers of no other restart policy"


def test_y8_the_nodes_have_the_ports_of_the_range_and_give_no_more() -> None:
    target = cluster(listed(node("nm1", used_gpus=0)))
    first = gang("a", role(1, 0, resources={"ports": 60}))
    found = place(target, first)
    assert found is not None
    target.apply(gang_placed(first, found, 0.0))
    assert place(target, gang("b", role(1, 0, resources={"ports": 41}))) is None
    assert place(target, gang("b", role(1, 0, resources={"ports": 40}))) is not None


def test_y8_while_tasks_come_and_go_every_port_of_a_host_has_one_owner() -> None:
    ports, source = HostPorts(20_000, 20_099), random.Random(7)
    held: dict[AttemptId, set[int]] = {}
    refused = 0
    for number in range(400):
        name = attempt(number)
        try:
            offers = ports.offer(name, "h", [PortRequest("a", source.randint(1, 6)), PortRequest("b")])
        except Unavailable:
            refused += 1
            ports.release(gone := source.choice(sorted(held)))
            del held[gone]
            continue
        assert ports.offer(attempt(1000 + number), "other", [PortRequest("a")]), "another host has its own"
        ports.release(attempt(1000 + number))
        taken = {numbers[source.randrange(len(numbers))] for numbers in offers}
        ports.settle(name, "h", taken)
        held[name] = taken
        every = [port for each in held.values() for port in each]
        assert len(every) == len(set(every))
    assert refused, "the range was full at times"


def test_y8_a_port_by_its_number_waits_for_the_task_that_has_it() -> None:
    ports = HostPorts(20_000, 20_099)
    named = [PortRequest("web", 2, start=8080)]
    assert ports.offer(attempt(0), "h", named) == ((8080, 8081),)
    with pytest.raises(Unavailable, match=r"Port 8080 of h, which the task asks for, is held by"):
        ports.offer(attempt(1), "h", named)
    ports.release(attempt(0))
    assert ports.offer(attempt(1), "h", named) == ((8080, 8081),)


def test_y8_tasks_without_ports_come_and_go_beside_one_that_has_some() -> None:
    ports = HostPorts(20_000, 20_099)
    for name in (attempt(0), attempt(1)):
        ports.settle(name, "h", [])
    ports.settle(attempt(2), "h", [20_005])
    for number in (2, 0, 1, 1):
        ports.release(attempt(number))
    assert len(ports.offer(attempt(3), "h", [PortRequest("a", 92)])[0]) == 100


def test_y8_a_slot_takes_of_its_offer_what_no_other_program_uses() -> None:
    with socket.socket() as other:
        other.bind(("", 0))
        other.listen()
        used = other.getsockname()[1]
        free = next(port for port in range(20_000, 30_000) if port != used)
        offer = {"name": "web", "count": 1, "start": 0, "numbers": [used, free]}
        assert _free_ports([offer]) == {"web": [free]}
        with pytest.raises(OSError, match="other programs use the ports"):
            _free_ports([{**offer, "numbers": [used]}])


async def test_y8_a_new_server_gives_no_ports_before_the_running_tasks_have_told_theirs() -> None:
    table, ports = SlotTable(), HostPorts(20_000, 20_001)
    grants = SlotGrants(table, ports, lambda: {"host-nm1": NodeFacts("nm1", True, "", 4)})
    running = Attempt(attempt(0), Phase.ASSIGNED, "container_1")
    asks = launch(1, ports=(PortRequest("web"),))
    waiting = Attempt(attempt(1), Phase.PENDING, launch=asks, shape=shape_of(asks, "yarn", {}))
    table.attempts = {each.name: each for each in (running, waiting)}
    with pytest.raises(Unavailable, match="1 tasks that an earlier server started"):
        grants.give(waiting, slot())
    grants.see(running, slot(), AttemptReport("running", ports={"web": (20_001,)}))
    grants.give(waiting, slot())
    assert waiting.offers == ((20_000,),)


def test_y8_a_slot_holds_no_port_that_it_was_not_offered() -> None:
    table, ports = SlotTable(), HostPorts(20_000, 20_099)
    grants = SlotGrants(table, ports, dict)
    asks = launch(0, ports=(PortRequest("web"),))
    given = Attempt(attempt(0), Phase.PENDING, launch=asks, shape=shape_of(asks, "yarn", {}))
    grants.give(given, slot())
    greedy = tuple(range(20_000, 20_100))
    grants.see(given, slot(), AttemptReport("running", ports={"web": greedy}))
    assert len(ports.offer(attempt(1), "host-nm1", [PortRequest("web", 80)])[0]) >= 80


@pytest.mark.parametrize("text", ["", "20000", "29999-20000", "80-90", "20000-70000", "a-b"])
def test_y8_a_range_of_ports_that_is_none_is_refused_with_its_setting(text: str) -> None:
    with pytest.raises(InvalidInput, match="yarn_ports has"):
        YarnKind().check(YarnOptions(**WHERE, yarn_ports=text))


def test_y9_a_device_that_another_application_holds_is_hidden_and_the_job_beside_it_stays() -> None:
    found = listed(node("nm1", used_gpus=2)).nodes[0]
    assert [device.healthy for device in found.devices] == [True, True, False, False]
    assert place(cluster(listed(node("nm1", used_gpus=2))), gang("a", role(1, 3))) is None


def test_a_node_without_the_attribute_is_in_no_rack_and_its_devices_are_only_counted() -> None:
    named, unnamed = listed(
        {**node("nm1", used_gpus=0), "rack": "/r1"}, {**without_attribute("b"), "rack": "/r1"}
    ).nodes
    assert (named.name, unnamed.name) == ("yarn/nm1", "yarn/host-b") or (named.name, unnamed.name) == (
        "yarn/host-b",
        "yarn/nm1",
    )
    by_name = {each.name: each for each in (named, unnamed)}
    assert by_name["yarn/nm1"].cells == (("rack", "r1"),)
    assert by_name["yarn/host-b"].cells == ()
    assert all(device.counted for device in by_name["yarn/host-b"].devices)


def test_where_yarn_chooses_the_nodes_a_required_level_of_several_tasks_is_refused() -> None:
    _, hosts = facts_of(nodes_of({"nodes": {"node": [without_attribute("a")]}}), SETTINGS)
    nodes = {each.name: each for each in hosts.values()}
    apart = launch(0, node="yarn/host-a", gang=(GangPart("main", "yarn/host-a", 2),))
    near = launch(0, node="yarn/host-a", gang=apart.gang, required_level="rack")
    alone = launch(0, node="yarn/host-a", gang=(GangPart("main", "yarn/host-a", 1),), required_level="rack")
    shape = shape_of(near, "yarn", nodes)
    assert shape.node == "", "its choice is left to YARN"
    check_level(apart, shape, SETTINGS)
    check_level(alone, shape, SETTINGS)
    with pytest.raises(InvalidInput) as error:
        check_level(near, shape, SETTINGS)
    assert error.value.message == (
        "The node yarn/host-a has no attribute nm.yarn.io/corral-node, so YARN chooses the nodes and cannot keep tasks "
        "in one rack: set the attribute (docs/yarn.md), or require no level."
    )
    check_level(near, shape_of(launch(0), "yarn", {}), SETTINGS)


def test_where_yarn_chooses_the_node_the_task_gets_devices_of_its_host_that_no_other_task_has() -> None:
    facts = {"h1": NodeFacts("h1", False, "", 4), "h2": NodeFacts("h2", False, "", 4)}
    table = SlotTable()
    grants = SlotGrants(table, HostPorts(20_000, 20_099), lambda: facts)
    devices = tuple(Device(index, f"yarn/h1:{index}", "gpu") for index in range(2))
    given = []
    for at, host in enumerate(("h2", "h2", "h1")):
        asks = launch(at, node="yarn/h1", devices=devices)
        made = Attempt(asks.attempt, Phase.PENDING, launch=asks, shape=shape_of(asks, "yarn", facts))
        grants.give(made, slot(host))
        table.attempts[made.name] = made
        given.append((made.node, made.devices))
    assert given == [("h2", (0, 1)), ("h2", (2, 3)), ("h1", (0, 1))]
    asks = launch(9, node="yarn/h1", devices=devices)
    late = Attempt(asks.attempt, Phase.PENDING, launch=asks, shape=shape_of(asks, "yarn", facts))
    with pytest.raises(Unavailable, match="h2 has 0 free devices and the task needs 2"):
        grants.give(late, slot("h2"))
    assert job_of(late.name) == JOB


def test_a_node_label_is_named_in_requests_and_keeps_others_off_where_it_is_exclusive() -> None:
    gold = {**node("nm1", used_gpus=0), "nodeLabels": ["gold"]}
    facts, _ = facts_of(nodes_of({"nodes": {"node": [gold]}}), SETTINGS)
    shape = shape_of(launch(0), "yarn", facts)
    document = service_of(SETTINGS, "s", "default", {"main-n0": (shape, 1)}, {})
    (constraint,) = document["components"][0]["placement_policy"]["constraints"]
    assert constraint["node_partitions"] == ["gold"]
    assert constraint["node_attributes"] == {SETTINGS.attribute: ["nm1"]}
    shared, own = cluster(listed(gold)), cluster(listed(gold, exclusive={"gold"}))
    wants = gang("a", role(1, 1))
    tolerates = gang("a", role(1, 1, nodes=NodeRules(tolerations=(Toleration("yarn.corral.dev/partition", "Exists"),))))
    assert place(shared, wants) is not None
    assert place(own, wants) is None
    assert place(own, tolerates) is not None
    assert listed(gold).nodes[0].labels == {"yarn.corral.dev/gold": "true", "corral.dev/host": "host-nm1"}


@pytest.mark.parametrize(
    ("answer", "labels"),
    [
        (None, set()),
        ({}, set()),
        ({"nodeLabelInfo": {"name": "gold", "exclusivity": "true", "partitionInfo": {}}}, {"gold"}),
        ({"nodeLabelInfo": [{"name": "gold", "exclusivity": True}, {"name": "free", "exclusivity": False}]}, {"gold"}),
    ],
)
def test_the_exclusive_labels_are_read_from_yarns_list(answer: Any, labels: set[str]) -> None:
    assert exclusive_labels_of(answer) == labels


def test_a_list_of_labels_that_is_none_is_told_as_such() -> None:
    with pytest.raises(Unavailable, match="list of node labels has an unknown form"):
        exclusive_labels_of({"nodeLabelInfo": [3]})
