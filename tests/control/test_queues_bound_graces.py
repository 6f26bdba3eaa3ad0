"""The preempted jobs' queue bounds their grace period, so that an owner waits no longer than that for its cells."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from corral.control.initial_configuration import seed
from corral.kernel.ids import AttemptId
from corral.model.cordons import Cordon, Drain
from corral.model.store_writes import IntentKind
from corral.spec.configuration_file import load_document
from tests.control.harness import House, PaperEngine, short

SITE = "kind: Queue\nname: short\ngracePeriodSeconds: 7\n---\nkind: Queue\nname: open\n"


class Engine(PaperEngine):
    """Records the grace period that tasks get."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.graces: list[float] = []

    async def stop(self, attempt: AttemptId, *, grace_seconds: float, signal: str = "TERM") -> None:
        """End the attempt at once."""
        self.graces.append(grace_seconds)
        await super().stop(attempt, grace_seconds=grace_seconds, signal=signal)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    made = House(tmp_path, Engine(nodes=1, devices=4))
    await made.open()
    yield made
    await made.close()


@pytest.mark.parametrize(
    ("queue", "own", "wanted"), [("short", 60, 7.0), ("short", 3, 3.0), ("open", 60, 60.0)]
)  # fmt: skip
async def test_a_queue_bounds_the_grace_of_its_jobs(house: House, queue: str, own: int, wanted: float) -> None:
    await seed(house.store, load_document(SITE), file="site.yaml", clock=house.clock)
    await house.begin()
    checkpoint = {"signal": "USR1", "graceSeconds": own}
    low = await house.submit(short("low", devices=4, queue=queue, checkpoint=checkpoint))
    await house.until(low, "running")
    high = await house.submit(short("high", devices=4, queue=queue, priority="prod"))
    await house.until(high, "running")
    engine = house.engine
    assert isinstance(engine, Engine) and engine.graces == [wanted]


@pytest.mark.parametrize(
    ("queue", "own", "drain", "wanted"),
    [("short", 60, None, 7.0), ("short", 60, 5.0, 5.0), ("short", 3, 50.0, 7.0), ("open", 60, None, 60.0)],
)
async def test_a_drain_gives_no_longer_than_the_queue_allows(
    house: House, queue: str, own: int, drain: float | None, wanted: float
) -> None:
    await seed(house.store, load_document(SITE), file="site.yaml", clock=house.clock)
    await house.begin()
    job = await house.submit(short("moves", devices=1, queue=queue, checkpoint={"graceSeconds": own}))
    await house.until(job, "running")
    await house.store.put_cordon(Cordon("local/node0", "root", "", house.clock.now(), Drain.NOW, drain))
    await house.until(job, "waiting")
    engine = house.engine
    assert isinstance(engine, Engine) and engine.graces == [wanted]


async def test_a_job_that_says_no_grace_gets_that_of_the_server(house: House) -> None:
    house.launch_policy = msgspec.structs.replace(house.launch_policy, default_grace=11.0)
    await house.begin()
    silent = await house.submit(short("silent", devices=1))
    says = await house.submit(short("says", devices=1, checkpoint={"grace": "30s"}))
    engine = house.engine
    assert isinstance(engine, Engine)
    for job, wanted in ((silent, 11.0), (says, 30.0)):
        await house.until(job, "running")
        await house.store.add_intent(job, IntentKind.STOP, {}, actor="ada", at=house.clock.now())
        await house.until(job, "stopped")
        assert engine.graces[-1] == wanted
