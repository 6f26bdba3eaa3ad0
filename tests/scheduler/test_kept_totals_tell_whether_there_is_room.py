"""The quick check by totals agrees with the search, for every gang that it decides."""

from __future__ import annotations

import random

import pytest
from msgspec import structs

from corral.scheduler.placement.room_check import RoomCheck, has_room
from corral.scheduler.placement.shape import gang_shape
from corral.scheduler.placement.trial import Trial
from tests.scheduler.machines import place
from tests.scheduler.test_the_oracle_agrees import ALONE, GangPlacer, asked, world


@pytest.mark.parametrize("asking", ALONE)
def test_whole_and_elastic_gangs_have_room_if_and_only_if_they_are_placed(asking: GangPlacer) -> None:
    for seed in range(100):
        source = random.Random(f"totals{asking.__name__}{seed}")
        target = world(source, spare=source.random() < 0.5).cluster()
        (role,), fields = asking(source)
        least = source.randint(0, len(role.indexes))
        request = asked((structs.replace(role, minimum=least),), fields)
        told = has_room(Trial(target), request, gang_shape(request))
        assert told in (None, place(target, request) is not None), seed


def test_they_tell_of_plain_gangs() -> None:
    told = set()
    for seed in range(60):
        source = random.Random(seed)
        target = world(source).cluster()
        (role,), fields = ALONE[0](source)
        request = asked((role,), fields)
        told.add(has_room(Trial(target), request, gang_shape(request)))
    assert {True, False} <= told


def test_few_checks_are_kept_beside_the_shapes_of_the_index() -> None:
    """A thousand amounts of processors: each shape's slots take 0.4 MB on 8,192 nodes."""
    source = random.Random(1)
    target = world(source).cluster()
    (role,), fields = ALONE[0](source)
    for cpu in range(1000, 2000):
        request = asked((structs.replace(role, cpu_millis=cpu),), fields)
        has_room(Trial(target), request, gang_shape(request))
    kept = {id(slots) for index in target.engines.values() for slots in index._slots.values()}
    checks = [check for check in target.room_checks.values() if isinstance(check, RoomCheck)]
    assert checks and len(kept.union(id(slots) for check in checks for _, slots, _ in check._totals)) <= 768
