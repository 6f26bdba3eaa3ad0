"""Inside a node the set with the lowest common ancestor wins, the best connected on ties."""

from __future__ import annotations

from itertools import combinations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.model.inventory import Device
from corral.model.requests import DeviceRequest, FractionRequest, TopologyRequest
from corral.scheduler.cluster.device_layout import Layout, indexes
from tests.scheduler.machines import cluster, gang, node, occupy, place, role

TREE = (
    (0xFF,),
    (0x0F, 0xF0),
    (0x03, 0x0C, 0x30, 0xC0),
    tuple(1 << device for device in range(8)),
)


def ancestor(mask: int) -> int:
    """The depth of the lowest cell around a mask."""
    return max(depth for depth, cells in enumerate(TREE) if any(mask & ~cell == 0 for cell in cells))


@st.composite
def links(draw: st.DrawFn) -> tuple[tuple[int, ...], ...]:
    values = {pair: draw(st.integers(0, 3)) for pair in combinations(range(8), 2)}
    return tuple(tuple(values.get((min(a, b), max(a, b)), 0) for b in range(8)) for a in range(8))


@given(st.integers(1, 255), st.data(), links())
def test_the_chosen_set_has_the_lowest_ancestor_and_then_the_best_links(
    free: int, data: st.DataObject, matrix: tuple[tuple[int, ...], ...]
) -> None:
    count = data.draw(st.integers(1, free.bit_count()))
    chosen = Layout(TREE, matrix).choose(free, count)
    assert chosen & ~free == 0
    assert chosen.bit_count() == count
    sets = [sum(1 << device for device in devices) for devices in combinations(indexes(free), count)]
    best = max((ancestor(each), sum(matrix[a][b] for a, b in combinations(indexes(each), 2))) for each in sets)
    assert (ancestor(chosen), sum(matrix[a][b] for a, b in combinations(indexes(chosen), 2))) == best


@given(st.integers(1, 255), st.integers(1, 4), st.integers(1, 3), st.integers(0, 2))
def test_all_that_there_is_room_for_is_allotted_apart_and_inside_its_cells(
    free: int, devices: int, size: int, depth: int
) -> None:
    layout = Layout(TREE)
    for blocks in range(1, layout.room(free, size, devices, depth) + 1):
        given_masks = layout.allot(free, blocks, size, devices, depth)
        tasks = [mask for block in given_masks for mask in block]
        assert [len(block) for block in given_masks] == [size] * blocks
        assert all(mask.bit_count() == devices for mask in tasks)
        assert sum(tasks).bit_count() == len(tasks) * devices
        assert sum(tasks) & ~free == 0
        assert all(ancestor(sum(block)) >= depth for block in given_masks)


def test_a_single_device_is_taken_where_a_switch_is_broken_already() -> None:
    target = cluster(node("n1", 8))
    occupy(target, "n1", 5)
    placement = place(target, gang("job"))
    assert placement is not None
    assert placement.tasks[0].devices == (4,)


def test_a_node_with_many_devices_is_answered_without_looking_at_every_set() -> None:
    layout = Layout(((2**32 - 1,), tuple(1 << device for device in range(32))))
    assert layout.choose(2**32 - 1, 16).bit_count() == 16


def test_named_devices_are_those_named_by_index_or_by_id() -> None:
    target = cluster(node("n1"), node("n2"))
    by_index = place(target, gang("job", role(ask=DeviceRequest(ids=("1", "3")))))
    by_id = place(target, gang("job", role(ask=DeviceRequest(ids=("n2:1", "n2:2")))))
    assert by_index is not None and by_id is not None
    assert by_index.tasks[0].devices == (1, 3)
    assert (by_id.tasks[0].node, by_id.tasks[0].devices) == ("local/n2", (1, 2))
    occupy(target, "n2", 2)
    assert place(target, gang("job", role(ask=DeviceRequest(ids=("n2:1", "n2:2"))))) is None


def test_a_block_of_tasks_shares_its_switch_though_the_gang_spans_nodes() -> None:
    target = cluster(node("n1", 8), node("n2", 8))
    for device in (0, 3, 5):
        occupy(target, "n1", device)
    ask = role(8, 1, topology=TopologyRequest(group_size=2, group_required="pcie-switch"))
    placement = place(target, gang("job", ask))
    assert placement is not None
    by_index = {task.index: task for task in placement.tasks}
    for first in range(0, 8, 2):
        pair = by_index[first], by_index[first + 1]
        assert pair[0].node == pair[1].node
        assert pair[0].devices[0] // 2 == pair[1].devices[0] // 2


@pytest.mark.parametrize("share", [None, FractionRequest(500_000, 500_000)])
@pytest.mark.parametrize("others", [64, 65, 128, 200])
def test_a_kind_of_device_is_found_beside_nodes_that_have_any_number_of_another(
    others: int, share: FractionRequest | None
) -> None:
    many = msgspec.structs.replace(
        node("many", 0), devices=tuple(Device(index, f"many:{index}", kind="fpga") for index in range(others))
    )
    target, ask = cluster(many, node("few", 2)), DeviceRequest(1, kind="gpu", share=share)
    occupy(target, "many", 0)
    placed = place(target, gang("g", role(2, ask=ask)))
    assert placed is not None
    assert {(task.node, len(task.devices)) for task in placed.tasks} == {("local/few", 1)}
    assert (place(target, gang("g", role(3, ask=ask))) is None) == (share is None)
    whole = place(target, gang("f", role(others - 1, ask=DeviceRequest(1, kind="fpga"))))
    assert whole is not None
    assert {task.node for task in whole.tasks} == {"local/many"}
