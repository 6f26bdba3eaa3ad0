"""Virtual clusters: a queue gets its owned cells, whole and close together, whoever was a guest there."""

from __future__ import annotations

import msgspec
import pytest

from corral.kernel.draw import draw, draw_integer
from corral.model.inventory import Node
from corral.model.plan import Rule
from corral.model.queues import CellQuota, QueueSpec
from corral.scheduler import NodesSeen
from tests.examples import at_least, examples
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, inventory, node, role

EVENTS = at_least(150, 500)
"""Random events of each cluster's life."""


def racks(count: int, nodes: int = 2, devices: int = 4) -> list[Node]:
    return [
        node(f"n{rack}{at}", devices, rack=f"r{rack}", block=f"b{rack // 2}")
        for rack in range(count)
        for at in range(nodes)
    ]


def owner(name: str, **quotas: int) -> QueueSpec:
    cells = tuple(CellQuota(level.replace("_", "-"), count) for level, count in quotas.items())
    return QueueSpec(name, cells=cells)


def guaranteed(life: Life) -> set[str]:
    return {job for job, gang in life.cluster.gangs.by_job.items() if gang.guaranteed}


def test_an_owner_of_two_nodes_always_places_two_node_gangs() -> None:
    life = Life(racks(2), [owner("lab", node=2), QueueSpec("guests")])
    life.submit(*(gang(f"guest{at:02}", role(1), at=float(at), queue="guests") for at in range(16)))
    life.settle(0.0)
    assert len(life.running) == 16
    life.submit(*(gang(f"mine{at}", role(4), at=20.0 + at, queue="lab", required="node") for at in range(2)))
    life.settle(1.0)
    assert {"mine0", "mine1"} <= guaranteed(life)
    assert {receipt.rule for receipt in life.receipts} == {Rule.GUARANTEE} and len(life.receipts) == 8


def test_minimum_run_time_and_a_word_against_preemption_protect_nobody_from_an_owner() -> None:
    life = Life(racks(1), [owner("lab", node=2), QueueSpec("guests", min_runtime_seconds=3600.0)])
    life.submit(gang("guest", role(8), queue="guests", preemptible=False, priority=1000))
    life.settle(0.0)
    life.submit(gang("mine", role(4), at=1.0, queue="lab", priority=0))
    life.settle(2.0)
    assert "mine" in life.running and life.rules() == [("guest", Rule.GUARANTEE)]


def test_an_owner_takes_empty_cells_before_it_ends_a_guest() -> None:
    life = Life(racks(2), [owner("lab", rack=1), QueueSpec("guests")])
    life.submit(gang("guest", role(8), queue="guests", required="rack"))
    life.settle(0.0)
    life.submit(gang("mine", role(8), at=1.0, queue="lab", required="rack"))
    life.settle(1.0)
    assert guaranteed(life) == {"mine"} and not life.receipts


def test_beyond_its_cells_a_queue_is_a_guest_itself() -> None:
    life = Life(racks(1), [owner("a", node=1), owner("b", node=1)])
    life.submit(gang("a1", role(4), queue="a"), gang("a2", role(4), at=1.0, queue="a"))
    life.settle(0.0)
    assert set(life.running) == {"a1", "a2"} and guaranteed(life) == {"a1"}
    life.submit(gang("b1", role(4), at=2.0, queue="b"))
    life.settle(1.0)
    assert guaranteed(life) == {"a1", "b1"} and life.rules() == [("a2", Rule.GUARANTEE)]


def test_a_gang_that_is_larger_than_its_owners_cells_yields_to_its_own_queue_by_priority_alone() -> None:
    life = Life(racks(1), [owner("lab", node=1)])
    life.submit(gang("large", role(8), queue="lab"))
    life.settle(0.0)
    life.submit(gang("equal", role(4), at=1.0, queue="lab"), gang("lower", role(4), at=2.0, queue="lab", priority=1))
    life.settle(3.0)
    assert life.sizes() == {"large": 8} and not life.receipts
    life.submit(gang("higher", role(4), at=4.0, queue="lab", priority=100))
    life.settle(5.0)
    assert "higher" in guaranteed(life) and [receipt.job for receipt in life.receipts] == ["large"]


def test_small_gangs_share_a_bound_cell_before_another_is_bound() -> None:
    life = Life(racks(2), [owner("lab", rack=2)])
    life.submit(*(gang(f"job{at}", role(1), at=float(at), queue="lab") for at in range(8)))
    life.settle(0.0)
    (cells,) = life.cluster.ownership.cells.values()
    assert len(cells.bound) == 1 and len(guaranteed(life)) == 8


def test_narrow_cells_are_bound_where_they_break_no_wide_one() -> None:
    life = Life(racks(3), [owner("wide", rack=2), owner("narrow", node=2)])
    life.submit(gang("n1", role(4), queue="narrow"), gang("n2", role(4), at=1.0, queue="narrow"))
    life.settle(0.0)
    used = {hold.node[:8] for job in ("n1", "n2") for hold in life.cluster.holds(job).values()}
    assert len(used) == 1
    life.submit(*(gang(f"w{at}", role(8), at=2.0 + at, queue="wide", required="rack") for at in range(2)))
    life.settle(1.0)
    assert guaranteed(life) == {"n1", "n2", "w0", "w1"}


def test_a_binding_that_would_break_another_guarantee_is_not_made() -> None:
    life = Life(racks(2), [owner("wide", rack=2), owner("narrow", node=1)])
    assert life.cluster.ownership.shortfalls()
    life = Life(racks(2), [owner("wide", rack=1), owner("narrow", node=2)])
    life.submit(gang("n1", role(4), queue="narrow"))
    life.settle(0.0)
    life.submit(gang("w", role(8), at=1.0, queue="wide", required="rack"), gang("n2", role(4), at=2.0, queue="narrow"))
    life.settle(1.0)
    assert guaranteed(life) == {"n1", "w", "n2"}


def test_cells_inside_a_node_can_be_owned_too() -> None:
    life = Life(racks(1, nodes=1), [owner("a", pcie_switch=1), owner("b", pcie_switch=1)])
    life.submit(gang("a1", role(1, 2), queue="a"), gang("b1", role(1, 2), at=1.0, queue="b"))
    life.settle(0.0)
    assert guaranteed(life) == {"a1", "b1"}
    held = [hold.devices for job in ("a1", "b1") for hold in life.cluster.holds(job).values()]
    assert sorted(held) == [0b0011, 0b1100]


def test_a_pinned_cell_is_its_owners_wherever_others_want_to_go() -> None:
    life = Life(racks(2), [QueueSpec("lab", pinned_cells=("local|node:local/n00",)), QueueSpec("guests")])
    life.submit(*(gang(f"guest{at}", role(4), at=float(at), queue="guests") for at in range(4)))
    life.settle(0.0)
    life.submit(gang("mine", role(4), at=9.0, queue="lab"))
    life.settle(1.0)
    assert guaranteed(life) == {"mine"}
    assert {hold.node for hold in life.cluster.holds("mine").values()} == {"local/n00"}


def test_a_higher_priority_of_the_owner_ends_its_own_lower_one_only_when_nobody_is_a_guest() -> None:
    life = Life(racks(1), [owner("lab", node=1), QueueSpec("guests")])
    life.submit(gang("low", role(4), queue="lab", priority=1), gang("guest", role(4), at=1.0, queue="guests"))
    life.settle(0.0)
    life.submit(gang("high", role(4), at=2.0, queue="lab", priority=100))
    life.settle(1.0)
    assert ("low", Rule.PRIORITY) in life.rules() and "high" in guaranteed(life)


def test_quotas_change_on_line_and_what_is_not_owned_any_more_runs_on_as_a_guest() -> None:
    life = Life(racks(1), [owner("a", node=2), QueueSpec("b")])
    life.submit(gang("a1", role(4), queue="a"), gang("a2", role(4), at=1.0, queue="a"))
    life.settle(0.0)
    assert guaranteed(life) == {"a1", "a2"}
    life.configure(owner("a", node=1), owner("b", node=1))
    assert set(life.running) == {"a1", "a2"} and len(guaranteed(life)) == 1
    life.submit(gang("b1", role(4), at=2.0, queue="b"))
    life.settle(5.0)
    assert "b1" in guaranteed(life) and len(life.receipts) == 1


@pytest.mark.parametrize("seed", range(examples(20)))
def test_h3_what_is_owed_is_always_left_whatever_happens(seed: int) -> None:
    """Random events on each of 20 random clusters; each cycle also compares kept indexes with rebuilt ones."""
    machines = {each.name: each for each in racks(2 + seed % 3, 2, 4)}
    quotas = [
        [owner("a", rack=1), owner("b", node=2), QueueSpec("c")],
        [owner("a", node=1, pcie_switch=1), owner("b", rack=1), QueueSpec("c")],
        [owner("a", node=2), owner("b", node=1), owner("c", pcie_switch=1)],
    ][seed % 3]
    life = Life(list(machines.values()), quotas)
    assert not life.cluster.ownership.shortfalls()
    for step in range(EVENTS):
        kind = draw_integer(seed, step, 1) % 10
        if kind < 4:
            levels = ("", "node", "rack", "pcie-switch")
            devices = 1 + draw_integer(seed, step, 2) % 3
            life.submit(
                gang(
                    f"job{step:04}",
                    role(1 + draw_integer(seed, step, 3) % 4, min(devices, 2)),
                    at=float(step),
                    queue="abc"[draw_integer(seed, step, 4) % 3],
                    priority=(-1, 1, 10, 100)[draw_integer(seed, step, 5) % 4],
                    required=levels[draw_integer(seed, step, 6) % 4],
                )
            )
        elif kind < 7 and life.running:
            life.end(sorted(life.running)[int(draw(seed, step, "ends") * len(life.running))])
        elif kind == 7:
            name = sorted(machines)[draw_integer(seed, step, 7) % len(machines)]
            sick = draw_integer(seed, step, 8) % 8
            devices_now = tuple(
                msgspec.structs.replace(device, healthy=device.index != sick) for device in machines[name].devices
            )
            machines[name] = msgspec.structs.replace(machines[name], devices=devices_now)
            life.planner.fold(NodesSeen(inventory(*machines.values())))
        elif kind == 8:
            life.yielded()
        else:
            life.cycle(float(step))
        assert not life.cluster.ownership.shortfalls(), step


@pytest.mark.parametrize("seed", range(examples(12)))
def test_an_owner_runs_whatever_fits_its_free_cells_once_guests_have_yielded(seed: int) -> None:
    life = Life(racks(3), [owner("lab", rack=1, node=2), QueueSpec("guests", min_runtime_seconds=1e6)])
    for at in range(24):
        tasks = 1 + draw_integer(seed, at) % 3
        life.submit(gang(f"guest{at:02}", role(tasks), at=float(at), queue="guests", priority=1000))
    life.settle(0.0)
    mine = [gang("wide", role(8), at=100.0, queue="lab", required="rack", priority=0)]
    mine += [gang(f"narrow{at}", role(4), at=101.0 + at, queue="lab", required="node", priority=0) for at in range(2)]
    life.submit(*(mine if seed % 2 else reversed(mine)))
    life.settle(200.0)
    assert {request.job for request in mine} <= guaranteed(life)


def test_a_higher_priority_that_its_own_cells_cannot_hold_does_not_drive_out_who_would_come_back_at_once() -> None:
    life = Life([node(f"n{at}") for at in range(2)], [owner("own", node=1), QueueSpec("other")])
    life.submit(gang("low", role(4), queue="own", priority=10))
    life.cycle(0.0)
    life.submit(gang("guest", role(3), at=1.0, queue="other"))
    life.cycle(1.0)
    life.submit(gang("big", role(5), at=2.0, priority=100, queue="own"))
    life.settle(10.0)
    assert set(life.running) == {"low", "guest"}
    life.submit(gang("fits", role(4), at=3.0, priority=100, queue="own"))
    life.settle(20.0)
    assert set(life.running) == {"fits", "guest"}
