"""The views of queues, the waiting list and the cells show the scheduler's own numbers, in bounded size."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.kernel.errors import NotFound
from corral.kernel.ids import JobId, TaskKey
from corral.model.inventory import Device, Node
from corral.model.queue_views import CellState, QueueStanding
from corral.model.queues import CellQuota, QueueSpec
from corral.model.requests import RoleRequest
from corral.scheduler import TasksLeaving
from corral.scheduler.queues.lending import lending, owned_devices
from corral.scheduler.queues.queue_order import QueueOrder
from corral.scheduler.views import CellTreeView, ahead_of, in_line, queue_standings, waiting_line
from tests.examples import examples
from tests.scheduler.life import Life
from tests.scheduler.machines import cluster, gang, node, role
from tests.scheduler.test_hived_decides import HivedLife


def name_of(job: JobId) -> str:
    return f"name of {job}"


def racks(count: int = 2, nodes: int = 2) -> list[Node]:
    return [node(f"n{rack}{at}", rack=f"r{rack}", block="b0") for rack in range(count) for at in range(nodes)]


def standings(life: Life) -> dict[str, QueueStanding]:
    return {each.name: each for each in queue_standings(life.cluster, life.queue, life.now, life.planner.owners_of)}


def tree(life: Life, under: str = "", depth: int = 9, limit: int = 1000) -> CellState:
    return (
        CellTreeView(life.cluster, name_of, life.planner.owners_of)
        .show(life.now, under=under, depth=depth, limit=limit)
        .cell
    )


def flat(cell: CellState) -> dict[str, CellState]:
    return {cell.id: cell} | {key: found for inner in cell.cells for key, found in flat(inner).items()}


# -- queues -----------------------------------------------------------------------------------------------------------


def test_a_queue_shows_what_it_is_owed_what_it_holds_and_who_has_the_rest() -> None:
    queues = [
        QueueSpec("team", deserved={"devices": 12}),
        QueueSpec("team-a", "team", deserved={"devices": 6}),
        QueueSpec("team-b", "team", deserved={"devices": 6}),
        QueueSpec("other", deserved={"devices": 4}, limit={"devices": 10}),
    ]
    life = Life(racks(), queues)
    life.submit(*(gang(f"o{at}", role(2), at=float(at), queue="other") for at in range(6)))
    life.submit(gang("a", role(4), at=9.0, queue="team-a"), gang("big", role(20), at=9.5, queue="team-b"))
    life.settle(10.0)
    found = standings(life)
    assert list(found) == ["other", "team", "team-a", "team-b"]
    assert [found[name].depth for name in found] == [0, 0, 1, 1]
    other, team = found["other"], found["team"]
    assert other.used == {"devices": 10} and other.limit == {"devices": 10} and other.borrowed == {"devices": 6}
    assert other.borrowed_from == {"team": 6} and team.lent_to == {"other": 6} and team.lent == {"devices": 6}
    assert (other.running, other.waiting, other.wanted) == (5, 1, {"devices": 2})
    assert (team.running, team.waiting, team.wanted) == (1, 1, {"devices": 20})
    assert team.used == {"devices": 4} and found["team-a"].used == {"devices": 4}
    assert team.fair["devices"] + other.fair["devices"] == pytest.approx(16)


def test_an_owner_sees_which_of_its_cells_are_bound_free_lent_or_missing() -> None:
    owner = QueueSpec("lab", cells=(CellQuota("node", 4),))
    life = Life([*racks(1, 3), node("bad", rack="r0", block="b0", ready=False)], [owner, QueueSpec("guests")])
    life.submit(gang("mine", role(4), queue="lab"), gang("guest", role(2), at=1.0, queue="guests"))
    life.settle(0.0)
    lab = standings(life)["lab"]
    (cells,) = lab.cells
    assert (cells.level, cells.devices, cells.owned) == ("node", 4, 4)
    assert (cells.bound, cells.free, cells.lent, cells.missing) == (1, 1, 1, 1)
    assert lab.owned_devices == 16 and lab.lent == {"devices": 2} and not lab.borrowed


def _shares(life: Life) -> dict[tuple[str, str], tuple[int, int, int, int]]:
    """By owner and level: bound, free, lent and missing."""
    return {
        (name, cells.level): (cells.bound, cells.free, cells.lent, cells.missing)
        for name, found in standings(life).items()
        for cells in found.cells
    }


def test_a_cell_inside_a_wider_one_that_is_owed_is_shown_to_one_owner_only() -> None:
    wide, narrow = QueueSpec("wide", cells=(CellQuota("rack", 1),)), QueueSpec("narrow", cells=(CellQuota("node", 2),))
    life = Life([*racks(1), node("bad", rack="r1", block="b0", ready=False)], [wide, narrow])
    assert _shares(life) == {("wide", "rack"): (0, 1, 0, 0), ("narrow", "node"): (0, 0, 0, 2)}
    life = Life(racks(2), [wide, narrow, QueueSpec("guests")])
    assert _shares(life) == {("wide", "rack"): (0, 1, 0, 0), ("narrow", "node"): (0, 2, 0, 0)}
    life.submit(gang("guest", role(1), queue="guests"))
    life.settle(0.0)
    assert _shares(life) == {("wide", "rack"): (0, 1, 0, 0), ("narrow", "node"): (0, 1, 1, 0)}


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_what_is_shown_as_free_an_owner_gets_and_nobody_yields(data: st.DataObject) -> None:
    machines = [
        node(f"n{rack}{at}", rack=f"r{rack}", block=f"b{rack // 2}", ready=data.draw(st.integers(0, 5)) > 0)
        for rack in range(4)
        for at in range(2)
    ]
    sizes, most = {"rack": 8, "node": 4, "pcie-switch": 2}, {"rack": 2, "node": 3, "pcie-switch": 4}
    quotas = {level: data.draw(st.integers(0, count)) for level, count in most.items()}
    specs = [QueueSpec(level, cells=(CellQuota(level, count),)) for level, count in quotas.items() if count]
    life = Life(machines, [*specs, QueueSpec("guests")])
    guests = data.draw(st.lists(st.integers(1, 4), max_size=5))
    life.submit(*(gang(f"g{at}", role(1, size), at=float(at), queue="guests") for at, size in enumerate(guests)))
    life.cycle(0.0)
    shown = _shares(life)
    there = sum(each.ready for each in machines) * 4
    assert sum((free + lent) * sizes[level] for (_, level), (_, free, lent, _) in shown.items()) <= there
    if not specs or life.cluster.ownership.shortfalls():
        return
    level = data.draw(st.sampled_from([spec.name for spec in specs]))
    for number in range(shown[level, level][1]):
        wish = gang(f"own{number}", role(sizes[level], 1), at=50.0, queue=level, required=level)
        life.submit(wish)
        found = life.cycle(50.0)
        assert [placed.job for placed in found.placements] == [wish.job] and not found.evictions
        assert life.cluster.gangs.by_job[wish.job].guaranteed


def test_beyond_its_cells_an_owner_borrows_as_a_guest() -> None:
    life = Life(racks(1), [QueueSpec("lab", cells=(CellQuota("node", 1),))])
    life.submit(gang("first", role(4), queue="lab"), gang("second", role(3), at=1.0, queue="lab"))
    life.settle(0.0)
    lab = standings(life)["lab"]
    assert (lab.running, lab.guests, lab.borrowed) == (2, 1, {"devices": 3})


def test_a_queue_that_nobody_configured_is_shown_once_something_stands_in_it() -> None:
    life = Life(racks(1))
    assert not standings(life)
    life.submit(gang("one", role(1), queue="fresh"))
    assert standings(life)["fresh"].waiting == 1


# -- the waiting list -------------------------------------------------------------------------------------------------


def test_the_line_tells_the_order_what_each_wants_and_why_it_waits() -> None:
    life = Life(racks(1), [QueueSpec("a"), QueueSpec("b", limit={"devices": 1})])
    life.submit(gang("holds", role(8), queue="a"))
    life.settle(0.0)
    life.submit(gang("late", role(2), at=3.0, queue="a"), gang("early", role(1), at=1.0, queue="a"))
    life.submit(gang("huge", role(2), at=0.5, queue="b"))
    life.cycle(4.0)
    line = waiting_line(life.cluster.queues, life.queue, life.policy, 4.0, name_of=name_of)
    assert [(entry.position, entry.job) for entry in line.items] == [(1, "huge"), (2, "early"), (3, "late")]
    huge, early, _ = line.items
    assert huge.name == "name of huge" and huge.reason is not None and huge.reason.code == "queue-limit"
    assert not huge.possible and early.possible and early.devices == 1 and early.submitted_at.startswith("1970-01-01")
    assert line.total == 3 and line.next is None
    assert ahead_of(life.cluster.queues, life.queue, life.policy, 4.0, JobId("late")) == ["early"], (
        "not huge, which never starts"
    )
    assert ahead_of(life.cluster.queues, life.queue, life.policy, 4.0, JobId("holds")) == []


def test_pages_of_the_line_join_and_one_queue_keeps_its_places() -> None:
    queues = [QueueSpec("team"), QueueSpec("team-a", "team"), QueueSpec("z")]
    life = Life(racks(1), queues)
    life.submit(*(gang(f"j{at}", role(9), at=float(at), queue=("team-a", "z")[at % 2]) for at in range(7)))
    whole = waiting_line(life.cluster.queues, life.queue, life.policy, 0.0, name_of=name_of)
    seen, after = [], 0
    while True:
        page = waiting_line(life.cluster.queues, life.queue, life.policy, 0.0, name_of=name_of, limit=2, after=after)
        seen += page.items
        if page.next is None:
            break
        after = int(page.next)
    assert tuple(seen) == whole.items and len(seen) == 7
    part = waiting_line(life.cluster.queues, life.queue, life.policy, 0.0, name_of=name_of, only="team")
    assert part.items == tuple(entry for entry in whole.items if entry.queue == "team-a") and part.total == 4


def test_a_job_whose_tasks_wait_apart_stands_once_with_all_that_it_could_still_get() -> None:
    life = Life(racks(1))
    life.submit(gang("all", role(8), at=0.0))
    life.settle(0.0)
    for first in (2, 5, 7):  # tasks of an elastic job that were given up at three times
        life.submit(gang("grows", growth(first, 2), at=1.0))
    life.submit(
        gang("alone", role(1, name="a"), at=2.0),
        gang("alone", role(2, name="b"), at=2.0),
        gang("next", role(3), at=3.0),
    )
    life.cycle(4.0)
    line = waiting_line(life.cluster.queues, life.queue, life.policy, 4.0, name_of=name_of)
    rows = [(row.position, row.job, row.grows, row.tasks, row.devices) for row in line.items]
    assert rows == [(1, "alone", False, 3, 3), (2, "next", False, 3, 3), (3, "grows", True, 6, 6)]
    assert line.total == 3 and line.next is None
    assert standings(life)["default"].waiting == 2, "jobs that wait to start"
    reason = line.items[2].reason
    assert reason is not None and reason.code == "not-enough-devices"
    assert reason.message == "One more task needs 1 device; 0 of 8 are free."
    page = waiting_line(life.cluster.queues, life.queue, life.policy, 4.0, name_of=name_of, limit=1, after=1)
    assert [row.job for row in page.items] == ["next"] and page.next == "2"


def growth(first: int, count: int) -> RoleRequest:
    """A request for `count` more tasks of a running gang."""
    return msgspec.structs.replace(role(count), indexes=tuple(range(first, first + count)), minimum=0)


def test_those_for_whom_others_yield_come_first_and_say_so() -> None:
    life = Life(racks(1))
    life.submit(*(gang(f"low{at}", role(4), at=float(at), priority=1) for at in range(2)))
    life.settle(0.0)
    life.submit(gang("urgent", role(4), at=9.0, priority=100))
    life.cycle(10.0)
    (urgent,) = waiting_line(life.cluster.queues, life.queue, life.policy, 10.0, name_of=name_of).items
    assert urgent.yielding and urgent.reason is not None and urgent.reason.code == "others-yield"


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_the_line_is_the_order_in_which_the_next_cycle_looks(data: st.DataObject) -> None:
    names = ["a", "b", "c", "d"]
    specs = [
        QueueSpec(name, data.draw(st.sampled_from(["", *names[:at]])), weight=at + 1.0) for at, name in enumerate(names)
    ]
    life = Life(racks(1), specs)
    for at in range(data.draw(st.integers(1, 12))):
        queue, priority = data.draw(st.sampled_from(names)), data.draw(st.sampled_from([0, 1]))
        count = data.draw(st.integers(1, 3))
        life.submit(gang(f"j{at:02}", role(count), at=float(at), queue=queue, priority=priority))
    life.cycle(20.0)
    groups = list(life.queue.groups.values())
    line, order = QueueOrder(groups, life.cluster.queues, 20.0, life.policy), []
    while (found := line.pop()) is not None:
        at, first, _ = found
        order.append(groups[at].keys[first])
        if first + 1 < len(groups[at].keys):
            line.push(at, first + 1)
    shown = [entry.key for _, entry in in_line(life.cluster.queues, life.queue, life.policy, 20.0)]
    assert sorted(shown) == sorted(order) and len(shown) == len(life.queue)
    if not life.queue.nominated:
        assert shown == order


# -- cells ------------------------------------------------------------------------------------------------------------


def test_cells_say_whose_they_are_and_who_uses_them() -> None:
    life = Life(racks(), [QueueSpec("lab", cells=(CellQuota("node", 2),)), QueueSpec("guests")])
    life.submit(gang("mine", role(4), queue="lab", required="node"), gang("guest", role(2), at=1.0, queue="guests"))
    life.settle(0.0)
    cells = flat(tree(life))
    top = cells[""]
    assert (top.devices, top.used, top.free, top.guests) == (16, 6, 10, 2)
    assert top.owners == {"lab": 4} and top.queues == {"lab": 4, "guests": 2}
    bound = [cell for cell in cells.values() if cell.level == "node" and cell.owner == "lab"]
    assert [cell.queues for cell in bound] == [{"lab": 4}] and not bound[0].whole
    assert sum(cell.whole for cell in cells.values() if cell.level == "node") == 3
    uses = [use for cell in cells.values() for device in cell.holds for use in device.uses]
    assert {(use.job, use.standing) for use in uses} == {("mine", "guaranteed"), ("guest", "guest")}
    assert {use.name for use in uses} == {"name of mine", "name of guest"}


def test_leaving_unhealthy_and_closed_devices_are_marked() -> None:
    sick = Device(0, "x:0", healthy=False, health_reason="XID 79")
    nodes = [
        Node("local/x", devices=(sick, Device(1, "x:1")), cpu_millis=9000, memory_bytes=9),
        Node("local/y", devices=(Device(0, "y:0"),), ready=False, ready_reason="cordoned by ada", cordoned=True),
    ]
    life = Life(nodes)
    life.submit(gang("one", role(1)))
    life.settle(0.0)
    life.planner.fold(TasksLeaving(JobId("one"), (TaskKey("worker", 0),)))
    cells = flat(tree(life))
    x, y = cells["local|node:local/x"], cells["local|node:local/y"]
    assert [(device.state, device.reason) for device in x.holds] == [("unhealthy", "XID 79"), ("leaving", "")]
    assert (x.unhealthy, x.leaving, x.free, x.state) == (1, 1, 0, "")
    assert (y.state, y.reason, y.closed, y.free) == ("cordoned", "cordoned by ada", 1, 0)
    assert [device.state for device in y.holds] == ["closed"]
    assert x.holds[1].uses[0].leaving and x.holds[1].uses[0].standing == "", "nobody owns cells, so nobody is a guest"


def test_a_pinned_cell_is_its_owners_while_nothing_runs_in_it() -> None:
    life = Life(racks(), [QueueSpec("lab", pinned_cells=("local|node:local/n11",))])
    pinned = [cell for cell in flat(tree(life)).values() if cell.pinned and cell.level == "node"]
    assert [(cell.name, cell.owner) for cell in pinned] == [("n11", "lab")]
    assert standings(life)["lab"].pinned == ("local|node:local/n11",)


def test_under_hiveds_preset_its_own_bindings_are_shown() -> None:
    life = HivedLife()
    life.submit(
        gang("mine", role(1, 4), queue="prod", priority=100),
        gang("guest", role(1, 2), queue="prod", priority=-1, at=1.0),
    )
    life.settle()
    cells = flat(tree(life))
    uses = {use.job: use.standing for cell in cells.values() for device in cell.holds for use in device.uses}
    assert uses == {"mine": "guaranteed", "guest": "guest"}
    (mine,) = life.nodes_of("mine")
    assert cells[f"local|node:local/{mine}"].owner == "prod" and cells[f"local|node:local/{mine}"].owners == {"prod": 4}
    assert cells["local|node:local/n2"].owner == "own" and cells["local|node:local/n2"].pinned
    prod = standings(life)["prod"]
    (share,) = prod.cells
    assert (share.level, share.devices, share.owned, share.bound) == ("BOX", 4, 2, 1)
    assert share.free + share.lent == 1 and share.missing == 0
    assert (prod.owned_devices, prod.running, prod.guests) == (8, 2, 1)
    (own,) = standings(life)["own"].cells
    assert (own.owned, own.bound) == (1, 1)


def test_under_hiveds_preset_nobody_is_a_guest_or_a_borrower_in_cells_of_its_own() -> None:
    life = HivedLife()
    owners = (("prod", "mine1"), ("prod", "mine2"), ("own", "pinned"))
    life.submit(*(gang(job, role(1, 4), queue=queue, at=float(at)) for at, (queue, job) in enumerate(owners)))
    life.settle()
    assert set(life.running) == {"mine1", "mine2", "pinned"}
    top = tree(life)
    assert (top.used, top.guests, top.owners) == (12, 0, {"prod": 8, "own": 4})
    shown = standings(life)
    assert [(each.guests, each.borrowed) for each in (shown["prod"], shown["own"])] == [(0, {}), (0, {})]
    assert lending(life.cluster.queues, owned_devices(life.cluster.ownership)) == {}
    life.submit(gang("guest", role(1, 2), queue="prod", priority=-1, at=9.0))
    life.settle(9.0)
    assert tree(life).guests == 2 and standings(life)["prod"].borrowed == {"devices": 2}
    assert lending(life.cluster.queues, owned_devices(life.cluster.ownership)) == {("test", "prod"): 2000}


def test_levels_that_nobody_named_are_left_out() -> None:
    plain = [Node(f"local/p{at}", devices=tuple(Device(i, f"p{at}:{i}") for i in range(2))) for at in range(3)]
    shown = tree(Life(plain))
    (engine,) = shown.cells
    assert [(cell.level, cell.name, cell.inside) for cell in engine.cells] == [("node", f"p{at}", 2) for at in range(3)]
    assert all(not cell.cells and len(cell.holds) == 2 for cell in engine.cells)


def test_every_cell_shown_is_found_again_by_its_id() -> None:
    life = Life(racks(), [QueueSpec("lab", cells=(CellQuota("pcie-switch", 3),))])
    life.submit(gang("mine", role(2), queue="lab"))
    life.settle(0.0)
    for key, cell in flat(tree(life)).items():
        if cell.level != "device":
            assert tree(life, under=key) == cell
    for wrong in (
        "nowhere|rack:r0",
        "local|rack:r9",
        "local|shelf:1",
        "local|pcie-switch:local/n00/99",
        "x",
        "local|numa:",
    ):
        with pytest.raises(NotFound):
            tree(life, under=wrong)


def test_an_answer_is_bounded_and_the_rest_is_a_page_or_a_subtree_away() -> None:
    life = Life(racks(8, 4))
    view = CellTreeView(life.cluster, name_of, life.planner.owners_of)
    for limit in (1, 5, 50):
        shown = view.show(0.0, depth=9, limit=limit).cell
        cells = flat(shown)
        assert len(cells) - 1 + sum(len(cell.holds) for cell in cells.values()) <= limit
        assert shown.devices == 128, "sums are of everything, whatever is shown"
    block = "local|block:b0"
    names, after = [], 0
    while True:
        page = view.show(0.0, under=block, depth=1, limit=3, after=after)
        names += [cell.name for cell in page.cell.cells]
        if page.next is None:
            break
        after = int(page.next)
    assert names == [f"r{at}" for at in range(8)]
    assert view.show(0.0, depth=0).cell.cells == ()


def test_65536_devices_are_shown_in_kilobytes() -> None:
    nodes = [node(f"n{at}", 8, rack=f"r{at // 16}", block=f"b{at // 256}", per_switch=4) for at in range(8192)]
    view = CellTreeView(cluster(*nodes), name_of)
    shown = view.show(0.0, depth=9, limit=1000)
    assert shown.cell.devices == 65_536 and len(msgspec.json.encode(shown)) < 600_000
