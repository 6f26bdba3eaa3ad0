"""Several tasks on one device, packed or spread, never more than the whole; slices exclude the whole device (A6)."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from corral.kernel.ids import JobId
from corral.model.inventory import Device, Node
from corral.model.placement import Placement
from corral.model.requests import DeviceRequest, FractionRequest, GangRequest, TopologyRequest
from corral.scheduler import Cluster, NodesSeen, TasksReleased, gang_placed
from corral.scheduler.cluster.device_count import WHOLE_DEVICE
from tests.examples import examples
from tests.scheduler.machines import cluster, gang, inventory, node, occupy, place, role
from tests.scheduler.oracle import World, broken

HALF = FractionRequest(500_000, 500_000)
QUARTER = FractionRequest(250_000, 250_000)


def sharing(share: FractionRequest, *, spread: bool = False) -> DeviceRequest:
    """A fraction of one device."""
    return DeviceRequest(1, share=FractionRequest(share.compute, share.memory, share.memory_bytes, spread))


def start(target: Cluster, request: GangRequest) -> Placement:
    """Place the gang for good."""
    placement = place(target, request)
    assert placement is not None
    target.apply(gang_placed(request, placement, 0.0))
    assert target.consistent()
    return placement


def where(placement: Placement) -> list[tuple[str, int]]:
    """Node and device of each task."""
    return [(task.node, *task.devices) for task in placement.tasks]  # type: ignore[misc]


def test_a6_packing_fills_broken_devices_before_it_breaks_others() -> None:
    target = cluster(node("n1", 4), node("n2", 4))
    first = where(start(target, gang("a", role(ask=sharing(HALF)))))
    second = where(start(target, gang("b", role(ask=sharing(QUARTER)))))
    third = where(start(target, gang("c", role(ask=sharing(QUARTER)))))
    assert first == second == third
    fourth = where(start(target, gang("d", role(ask=sharing(QUARTER)))))
    assert fourth != first
    whole = place(target, gang("e", role(6)))
    assert whole is not None, "only two of the eight devices are broken"
    assert place(target, gang("f", role(7))) is None


def test_a6_packing_takes_the_fullest_device_that_still_fits() -> None:
    target = cluster(node("n1", 2))
    start(target, gang("a", role(ask=sharing(FractionRequest(700_000, 100_000)))))
    start(target, gang("b", role(ask=sharing(FractionRequest(400_000, 100_000)))))
    assert where(start(target, gang("c", role(ask=sharing(FractionRequest(300_000, 0)))))) == [("local/n1", 0)]
    assert where(start(target, gang("d", role(ask=sharing(FractionRequest(300_000, 0)))))) == [("local/n1", 1)]


def test_a6_spreading_takes_the_emptiest_device() -> None:
    target = cluster(node("n1", 2), node("n2", 2))
    found = [where(start(target, gang(f"j{at}", role(ask=sharing(QUARTER, spread=True)))))[0] for at in range(4)]
    assert len(set(found)) == 4
    together = start(target, gang("k", role(4, ask=sharing(QUARTER, spread=True)), required="node"))
    assert Counter(where(together)).most_common(1)[0][1] == 2


def test_memory_binds_as_well_as_computing_power() -> None:
    devices = (Device(0, "d0", memory_bytes=80), Device(1, "d1", memory_bytes=40))
    target = cluster(Node("local/n", devices=devices))
    ask = sharing(FractionRequest(compute=100_000, memory_bytes=40))
    placement = place(target, gang("a", role(3, ask=ask)))
    assert placement is not None
    assert Counter(where(placement)) == {("local/n", 0): 2, ("local/n", 1): 1}
    assert {(task.devices[0], task.share.memory) for task in placement.tasks if task.share} == {
        (0, 500_000),
        (1, 1_000_000),
    }
    assert place(target, gang("a", role(4, ask=ask))) is None
    assert place(target, gang("a", role(1, ask=sharing(FractionRequest(memory_bytes=81))))) is None


def test_a_share_says_whether_anything_keeps_the_task_to_it() -> None:
    plain = place(cluster(node("n1", 2)), gang("a", role(ask=sharing(HALF))))
    assert plain is not None
    assert plain.notes == ("device shares are counted but not enforced on local/n1",)
    kept = place(cluster(node("n1", 2, labels={"corral.dev/mps": "true"})), gang("a", role(ask=sharing(HALF))))
    assert kept is not None
    assert kept.notes == ()
    assert place(cluster(node("n1", 2)), gang("a", role())).notes == ()  # type: ignore[union-attr]


def test_parts_stay_inside_the_cell_that_is_required() -> None:
    target = cluster(node("n1", 4))
    placement = place(target, gang("a", role(4, ask=sharing(HALF)), required="pcie-switch"))
    assert placement is not None
    assert {task.devices[0] // 2 for task in placement.tasks} == {0}
    blocks = role(
        6,
        ask=sharing(FractionRequest(600_000, 0)),
        topology=TopologyRequest(group_size=2, group_required="pcie-switch"),
    )
    assert place(target, gang("b", blocks)) is None
    assert place(cluster(node("n1", 6)), gang("b", blocks)) is not None


def sliced(*names: str) -> World:
    """Nodes of two devices, each of which makes two slices."""
    devices = (
        Device(0, "d0", model="big"), Device(1, "d1", model="big"),
        Device(2, "s0", model="slice", parent=0), Device(3, "s1", model="slice", parent=0),
        Device(4, "s2", model="slice", parent=1), Device(5, "s3", model="slice", parent=1),
    )  # fmt: skip
    return World(tuple(Node(f"local/{name}", (("rack", "r"),), devices) for name in names), [])


def test_a_device_with_slices_in_use_is_not_given_whole_nor_the_other_way_round() -> None:
    target = sliced("n1").cluster()
    slice_of = role(ask=DeviceRequest(1, model="slice"))
    first = start(target, gang("a", slice_of))
    assert first.tasks[0].devices == (2,)
    assert place(target, gang("b", role(2))) is None
    whole = start(target, gang("b", role()))
    assert whole.tasks[0].devices == (1,)
    assert place(target, gang("c", role(2, ask=DeviceRequest(1, model="slice")))) is None
    assert start(target, gang("c", slice_of)).tasks[0].devices == (3,)
    target.apply(TasksReleased(JobId("a"), (first.tasks[0].key,)))
    assert place(target, gang("d", role())) is None
    target.apply(TasksReleased(JobId("c"), (first.tasks[0].key,)))
    assert place(target, gang("d", role())) is not None
    assert target.consistent()


def test_slices_of_one_device_are_taken_before_another_is_cut() -> None:
    target = sliced("n1", "n2").cluster()
    found = [start(target, gang(f"j{at}", role(ask=DeviceRequest(1, model="slice")))).tasks[0] for at in range(4)]
    assert {task.node for task in found} == {"local/n1"}
    assert [task.devices for task in found] == [(2,), (3,), (4,), (5,)]
    assert place(target, gang("whole", role(2))) is not None


def test_a_slice_is_taken_of_the_device_that_is_cut_already() -> None:
    target = sliced("n1").cluster()
    occupy(target, "n1", 4)
    assert start(target, gang("a", role(ask=DeviceRequest(1, model="slice")))).tasks[0].devices == (5,)


def test_whoever_asks_for_any_device_gets_a_whole_one() -> None:
    target = sliced("n1").cluster()
    assert place(target, gang("a", role(3))) is None
    request = gang("a", role(2))
    placement = place(target, request)
    assert placement is not None
    assert broken(sliced("n1"), request, placement) == []


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_no_device_is_ever_given_for_more_than_the_whole(data: st.DataObject) -> None:
    """Gangs with fractions, slices and whole devices come and go; kept state equals a recount."""
    target = sliced("n1", "n2").cluster()
    running: dict[str, Placement] = {}
    asks = [sharing(HALF), sharing(QUARTER), sharing(FractionRequest(300_000, 0), spread=True),
            DeviceRequest(1), DeviceRequest(2), DeviceRequest(1, model="slice"),
            DeviceRequest(1, model="slice", share=HALF)]  # fmt: skip
    for number in range(data.draw(st.integers(1, 14))):
        if running and data.draw(st.integers(0, 2)) == 0:
            job = data.draw(st.sampled_from(sorted(running)))
            target.apply(TasksReleased(JobId(job), tuple(task.key for task in running.pop(job).tasks)))
        request = gang(f"j{number:02}", role(data.draw(st.integers(1, 3)), ask=data.draw(st.sampled_from(asks))))
        before = target.digest()
        placement = place(target, request)
        assert target.digest() == before
        if placement is not None:
            running[request.job] = start(target, request)
        held: Counter[tuple[str, int]] = Counter()
        for task in (task for each in running.values() for task in each.tasks):
            for device in task.devices:
                held[task.node, device] += task.share.compute if task.share else WHOLE_DEVICE
        assert all(amount <= WHOLE_DEVICE for amount in held.values())
        parents = {index: each.parent for index, each in enumerate(sliced("n1").nodes[0].devices)}
        assert not any((name, parents[index]) in held for name, index in held)
        assert target.consistent()
        assert target.fork().digest() == target.digest()


def test_what_is_held_in_parts_outlasts_a_change_of_the_machines() -> None:
    target = cluster(node("n1", 2))
    start(target, gang("a", role(ask=sharing(HALF))))
    target.apply(NodesSeen(inventory(node("n1", 2), node("n2", 2))))
    assert target.consistent()
    assert place(target, gang("b", role(4))) is None
    assert place(target, gang("b", role(3))) is not None
