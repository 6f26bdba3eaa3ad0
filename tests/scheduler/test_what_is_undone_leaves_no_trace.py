"""What a trial undoes leaves no trace: slots that saw nothing of it look at no node again, and all show the right room."""

from __future__ import annotations

import random

import pytest

from corral.scheduler.cluster.allocation import Allocation, allocation_of
from corral.scheduler.cluster.engine_index import EngineIndex
from corral.scheduler.cluster.shape_slots import Slots
from corral.scheduler.placement.shape import task_shape
from tests.examples import at_least
from tests.scheduler.machines import cluster, node, role

SHAPES = [task_shape(role(1, devices)) for devices in (1, 2, 4)]
NODES = 4
COMMITTED = NODES - 1
"""The node that no trial touches."""


def machines() -> EngineIndex:
    (index,) = cluster(*(node(f"n{at}") for at in range(NODES))).engines.values()
    return index


def test_slots_that_saw_nothing_of_a_trial_look_at_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    index = machines()
    small, large = SHAPES[0], SHAPES[2]
    assert index.slots(small).room.tolist() == [4] * NODES and index.slots(large).room.tolist() == [1] * NODES
    looked_at, keep = list[tuple[int, int]](), Slots._set

    def noted(slots: Slots, index: EngineIndex, at: int, room: int, key: int) -> None:
        looked_at.append((slots.shape.devices, at))
        keep(slots, index, at, room, key)

    monkeypatch.setattr(Slots, "_set", noted)
    outer = index.mark()
    index.take(allocation_of(small, 0, 0b11, 2))
    inner = index.mark()
    index.take(allocation_of(small, 1, 0b1, 1))
    assert index.slots(small).room.tolist() == [2, 3, 4, 4]
    index.undo(inner)
    looked_at.clear()
    assert index.slots(small).room.tolist() == [2, 4, 4, 4] and looked_at == [(1, 1)]
    index.undo(outer)
    looked_at.clear()
    assert index.slots(large).room.tolist() == [1] * NODES and not looked_at
    assert index.slots(small).room.tolist() == [4] * NODES and looked_at == [(1, 0)]


@pytest.mark.parametrize("seed", range(at_least(5, 60)))
def test_slots_show_what_is_free_whatever_was_tried_and_undone(seed: int) -> None:
    draw, index = random.Random(seed), machines()
    held = list[Allocation]()
    marks = list[tuple[int, list[Allocation]]]()
    before = repr(index.columns())
    for _ in range(60):
        what = draw.choice(["take", "take", "lift", "ask", "ask", "mark", "undo", "new", "commit"])
        if what == "take" and (found := taking(draw, index, draw.randrange(COMMITTED))):
            index.take(found)
            held.append(found)
        elif what == "lift" and held:
            index.lift(held.pop(draw.randrange(len(held))))
        elif what == "ask":
            shape = draw.choice(SHAPES)
            assert index.slots(shape).same_as(Slots(index, shape, 1, 0))
        elif what == "mark":
            marks.append((index.mark(), [*held]))
        elif what == "undo" and marks:
            mark, held = marks.pop(draw.randrange(len(marks)))
            index.undo(mark)
            marks = [each for each in marks if each[0] <= mark]
        elif what == "new":
            shape = task_shape(role(1, 1, cpu_millis=draw.randrange(1, 9)))
            assert index.slots(shape).same_as(Slots(index, shape, 1, 0))
        elif what == "commit" and (found := taking(draw, index, COMMITTED)):
            index.add(found)  # no planner does so within a trial, and the room must be right all the same
            assert index.slots(SHAPES[0]).same_as(Slots(index, SHAPES[0], 1, 0))
            index.remove(found)
    index.undo(0)
    assert repr(index.columns()) == before
    assert index.consistent()


def taking(draw: random.Random, index: EngineIndex, at: int) -> Allocation | None:
    """An allocation of some free devices of a node."""
    mask = index.free[at] & draw.randrange(1, 16)
    return allocation_of(SHAPES[0], at, mask, mask.bit_count()) if mask else None


def test_a_copy_made_within_a_trial_follows_its_own_changes() -> None:
    index = machines()
    index.slots(SHAPES[0])
    index.take(allocation_of(SHAPES[0], 0, 0b1, 1))
    index.slots(SHAPES[0])
    twin = index.copy()
    twin.undo(0)
    assert twin.slots(SHAPES[0]).room.tolist() == [4] * NODES
    assert index.slots(SHAPES[0]).room.tolist() == [3, 4, 4, 4]
    index.undo(0)
    assert index.consistent() and twin.consistent()
