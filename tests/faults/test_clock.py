"""A clock that jumps: no rule sees time run backwards, and no server loses or gains the lead by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.kernel.clock import VirtualClock
from corral.model.store_writes import Holder
from corral.store import LeadershipLost, open_store
from corral.systemclock import SystemClock
from tests.databases import sqlite_store

ME = Holder("here", "boot", 1, "1", "")
OTHER = Holder("there", "boot", 2, "2", "")


class Machine:
    """The operating system's clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.steady = 1_000_000.0, 50.0
        monkeypatch.setattr("corral.systemclock.time.time", lambda: self.wall)
        monkeypatch.setattr("corral.systemclock.time.monotonic", lambda: self.steady)

    def pass_time(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_a_jump_back_never_shows(machine: Machine) -> None:
    clock = SystemClock()
    before = clock.now()
    machine.wall -= 3600
    assert clock.now() == before
    machine.pass_time(10)
    assert clock.now() == pytest.approx(before + 10)


def test_after_a_jump_ahead_the_wall_is_right_again(machine: Machine) -> None:
    clock = SystemClock()
    machine.wall += 3600
    assert clock.now() == machine.wall
    machine.wall -= 3600
    machine.pass_time(1)
    assert clock.now() == pytest.approx(machine.wall + 3600)


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0])
async def test_a_leader_whose_clock_jumps_goes_on_leading(machine: Machine, tmp_path: Path, jump: float) -> None:
    store = await open_store(sqlite_store(tmp_path), clock=SystemClock())
    try:
        lease = await store.lead(ME)
        assert lease is not None
        machine.wall += jump
        lease = await store.renew(lease)
        machine.pass_time(1)
        assert (await store.renew(lease)).epoch == lease.epoch
    finally:
        await store.close()


@pytest.mark.parametrize("ahead", [-86_400.0, 86_400.0])
async def test_a_candidate_with_a_wrong_clock_waits_like_any_other(tmp_path: Path, ahead: float) -> None:
    url = sqlite_store(tmp_path)
    leaders, candidates = VirtualClock(1_000_000.0), VirtualClock(1_000_000.0 + ahead)
    one, two = await open_store(url, clock=leaders), await open_store(url, clock=candidates)
    try:
        lease = await one.lead(ME, ttl=3.0)
        assert lease is not None
        for _ in range(5):
            assert await two.lead(OTHER, ttl=3.0) is None
            leaders.advance(1)
            candidates.advance(1)
            lease = await one.renew(lease, ttl=3.0)
        assert await two.lead(OTHER, ttl=3.0) is None
        candidates.advance(3.1)
        taken = await two.lead(OTHER, ttl=3.0)
        assert taken is not None and taken.epoch == lease.epoch + 1
        with pytest.raises(LeadershipLost):
            await one.renew(lease)
    finally:
        await one.close()
        await two.close()
