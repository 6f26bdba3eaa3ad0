"""Everything that a killed process had acknowledged is stored completely, and the next process works at once."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from corral.kernel.draw import draw
from corral.model.records import JobFilter
from corral.store import Store, open_store
from tests.examples import at_least
from tests.store.makers import Ticking

ROUNDS = at_least(2, 8)
_WRITER = Path(__file__).with_name("writer_process.py")


@pytest.mark.crash
async def test_no_acknowledged_submit_is_lost_when_the_writer_is_killed(store_url: str, clock: Ticking) -> None:
    acknowledged: set[str] = set()
    for number in range(ROUNDS):
        acknowledged |= await asyncio.to_thread(_killed_round, store_url, number)
    assert len(acknowledged) >= ROUNDS
    store = await open_store(store_url, clock=clock)
    try:
        await _check(store, acknowledged)
    finally:
        await store.close()


def _killed_round(url: str, number: int) -> set[str]:
    """Run the writer, kill it at a random moment of the round, and return its acknowledged ids."""
    with subprocess.Popen([sys.executable, str(_WRITER), url, str(number)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        first = process.stdout.readline()
        time.sleep(draw("crash", number) * 0.15)
        process.send_signal(signal.SIGKILL)
        lines = (first + process.stdout.read()).decode().split("\n")
    return {line for line in lines[:-1] if line}


async def _check(store: Store, acknowledged: set[str]) -> None:
    live = await store.load_live()
    stored = {job.id for job in live}
    assert acknowledged <= stored
    seqs: list[int] = []
    submitted: set[str] = set()
    while events := await store.events(seqs[-1] if seqs else 0, 1000):
        seqs.extend(event.seq for event in events)
        submitted |= {event.job for event in events}
    assert seqs == list(range(1, len(seqs) + 1)), "numbers without a gap, in order"
    assert await store.last_seq() == seqs[-1]
    assert submitted == stored and len(seqs) == len(stored), "each job whole: its row, its run, its event"
    tagged = await store.list_jobs(JobFilter(tag="crash"), limit=1000)
    assert len(tagged.items) == min(1000, len(stored))
