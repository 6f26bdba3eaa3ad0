"""A call of an installed part of a policy ends when the calls of its plan have used up their time."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.control.part_time_limit import PartTimeLimit
from corral.scheduler.policy.call_guard import TookTooLong, begin_plan, guarded


def spin() -> None:
    """Compute for ever, and take every error for one's own."""
    while True:
        try:
            sum(range(100))
        except Exception:
            pass


def compute(seconds: float) -> float:
    """Use processor time."""
    began = time.thread_time()
    while time.thread_time() < began + seconds:
        pass
    return seconds


@pytest.fixture
def limit() -> Iterator[PartTimeLimit]:
    made = PartTimeLimit(processor_seconds=0.1, wall_seconds=120.0)
    made.install()
    yield made
    made.close()


@pytest.mark.usefixtures("limit")
def test_a_call_without_end_is_ended() -> None:
    with pytest.raises(TookTooLong):
        guarded(spin)


def test_a_call_that_waits_for_ever_is_ended(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    limit = PartTimeLimit(processor_seconds=60.0, wall_seconds=0.2)
    limit.install()
    try:
        with pytest.raises(TookTooLong):
            guarded((tmp_path / "pipe").read_text)
    finally:
        limit.close()


@pytest.mark.usefixtures("limit")
def test_the_calls_of_one_plan_share_their_time_and_the_next_plan_has_its_own() -> None:
    with pytest.raises(TookTooLong):
        for _ in range(100):
            guarded(compute, 0.02)
    with pytest.raises(TookTooLong):
        guarded(compute, 0.0)
    begin_plan()
    assert guarded(compute, 0.01) == 0.01


@pytest.mark.usefixtures("limit")
def test_a_call_of_another_thread_is_not_limited() -> None:
    found = []
    other = threading.Thread(target=lambda: found.append(guarded(compute, 0.3)))
    other.start()
    other.join()
    assert found == [0.3]


def test_a_signal_between_calls_does_nothing_and_closing_takes_the_limit_away(limit: PartTimeLimit) -> None:
    signal.raise_signal(signal.SIGPROF)
    limit.close()
    assert guarded(compute, 0.3) == 0.3
