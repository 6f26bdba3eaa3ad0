"""A fault of the server is reported once, and so is its end; short faults are not reported."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from corral.kernel.clock import VirtualClock
from corral.kernel.errors import Unavailable
from corral.model.store_writes import ServerEvent
from corral.model.views import Readiness
from corral.service.health_events import DEGRADED, RECOVERED, Health, HealthWatch

WELL: tuple[str, ...] = ()
FULL = ("The disk is full.",)
FEW = [(f"The front has {left} of 1024 file descriptors left.",) for left in (9, 8, 7)]
BOTH = FULL + FEW[0]


@pytest.mark.parametrize(
    ("looks", "told"),
    [
        ([WELL, WELL, WELL], []),
        ([FULL, WELL, FULL, WELL], []),
        ([FULL, FULL, FULL, WELL, WELL], [(1, DEGRADED), (3, RECOVERED)]),
        ([FEW[0], FEW[1], FEW[2], WELL], [(1, DEGRADED), (3, RECOVERED)]),
        ([FULL, FULL, BOTH, BOTH, FEW[1], WELL], [(1, DEGRADED), (3, DEGRADED), (5, RECOVERED)]),
        ([FULL, FULL, WELL, FULL, FULL, WELL], [(1, DEGRADED), (2, RECOVERED), (4, DEGRADED), (5, RECOVERED)]),
    ],
)
def test_a_change_that_lasts_is_told_once(looks: list[tuple[str, ...]], told: list[tuple[int, str]]) -> None:
    health = Health()
    seen = [(at, health.look(Readiness(True, reasons, bool(reasons)), float(at))) for at, reasons in enumerate(looks)]
    assert [(at, event.kind) for at, event in seen if event is not None] == told


def test_the_words_are_the_reasons_and_how_long_it_lasted() -> None:
    health = Health()
    health.look(Readiness(True, BOTH, True), 100.0)
    told = health.look(Readiness(True, BOTH, True), 110.0)
    assert told is not None and told.message == "The disk is full. The front has 9 of 1024 file descriptors left."
    again = health.look(Readiness(True), 150.0)
    assert again is not None and again.message == "Everything works again, after 40 s."


async def test_what_the_store_does_not_take_is_told_when_it_does(clock: VirtualClock) -> None:
    reasons, told, full = FULL, [], True

    async def look() -> Readiness:
        return Readiness(True, reasons, bool(reasons))

    async def tell(events: Sequence[ServerEvent]) -> None:
        if full:
            raise Unavailable("storage-full", "The disk is full.")
        told.extend(events)

    watch = HealthWatch(look, tell, clock, "front on here")
    for _ in range(3):
        await watch.look()
    assert told == []
    full, reasons = False, WELL
    await watch.look()
    await watch.look()
    assert [(each.kind, each.actor) for each in told] == [(DEGRADED, "front on here"), (RECOVERED, "front on here")]
