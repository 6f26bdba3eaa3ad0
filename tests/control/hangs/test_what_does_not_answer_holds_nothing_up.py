"""A log or a shared folder that does not answer keeps no other job from being looked at and told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from corral.control.hangs.bundles import Bundles
from corral.kernel.ids import AttemptId, JobId
from corral.storage.remote_folder import RemoteFolder
from tests.control.hangs.test_silent_gangs_are_looked_at import Logs, Watched, site
from tests.control.harness import short

__all__ = ["site"]


class StuckLogs(Logs):
    """Logs of which those of one job do not answer."""

    def __init__(self) -> None:
        super().__init__()
        self.stuck, self.asked = JobId(""), list[AttemptId]()

    async def source(self, attempt: AttemptId, stream: str) -> Logs:
        self.asked.append(attempt)
        if self.stuck and attempt.startswith(self.stuck):
            await asyncio.Event().wait()
        return self


class StuckFolder:
    """A shared folder that never answers."""

    def __init__(self) -> None:
        self.put_names: list[str] = []

    async def close_to_others(self) -> None:
        """It is closed."""

    async def put(self, name: str, source: Path) -> None:
        self.put_names.append(name)
        await asyncio.Event().wait()

    async def files(self) -> dict[str, int]:
        await asyncio.Event().wait()
        return {}


@pytest.fixture
async def watched(site: Callable[[], Any]) -> AsyncIterator[Watched]:
    found: Watched = await site()
    yield found
    await found.keeper.close()


async def test_a_hang_is_told_while_the_shared_folder_does_not_answer(watched: Watched, tmp_path: Path) -> None:
    folder = StuckFolder()
    watched.keeper._bundles = Bundles(tmp_path / "bundles", shared=cast(RemoteFolder, folder))
    async with watched.house.patience():
        jobs = [await watched.running(short(f"gang{at}", replicas=2, queue="lab")) for at in range(3)]
        await watched.look(61, 5, 5)
        for job in jobs:
            (told,) = await watched.told(job)
            assert (await watched.keeper._bundles.read(job, told["bundle"]))[:2] == b"\x1f\x8b"
            assert any(each.startswith(f"{job}.") for each in folder.put_names)


async def test_a_log_that_does_not_answer_keeps_no_job_from_being_told(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.control.hangs.signs._LOG_SECONDS", 0.05)
    monkeypatch.setattr("corral.control.hangs.keeper._LOG_SECONDS", 0.05)
    logs = StuckLogs()
    watched.keeper._logs = watched.keeper._lives._logs = cast(Any, logs)
    jobs = [await watched.running(short(name, replicas=2, queue="lab")) for name in ("first", "second")]
    logs.stuck = jobs[0]
    with capture_logs() as said:
        await watched.look(61)
    assert [each["tasks"] for each in said if each["event"] == "logs of running tasks did not answer in time"] == [2]
    assert [len(await watched.told(job)) for job in jobs] == [1, 1]
    logs.asked.clear()
    logs.size_now = 200
    await watched.look(5)
    assert not any(each.startswith(jobs[0]) for each in logs.asked)  # not again so soon
    await watched.look(61)
    assert any(each.startswith(jobs[0]) for each in logs.asked)


async def test_jobs_for_whose_logs_there_was_no_time_come_first_in_the_next_look(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.control.hangs.signs._TOGETHER", 1)
    logs = StuckLogs()
    watched.keeper._logs = watched.keeper._lives._logs = cast(Any, logs)
    jobs = [await watched.running(short(name, replicas=1, queue="lab")) for name in ("first", "second")]
    logs.stuck = jobs[0]
    with monkeypatch.context() as short_time, capture_logs() as said:
        short_time.setattr("corral.control.hangs.signs._LOGS_SECONDS", 0.05)
        await watched.look(61)
    assert [each["jobs"] for each in said if "there was no time" in each["event"]] == [2]
    assert [len(await watched.told(job)) for job in jobs] == [0, 0]  # nothing is known of their logs
    logs.stuck = JobId("")
    logs.asked.clear()
    await watched.look(5)
    assert logs.asked[0].startswith(jobs[1])
    assert [len(await watched.told(job)) for job in jobs] == [1, 1]


async def test_a_job_that_goes_on_while_its_logs_are_kept_is_not_told(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.control.hangs.keeper._LOG_SECONDS", 600.0)
    begun, go_on = asyncio.Event(), asyncio.Event()

    class Slow(Logs):
        async def read(self, offset: int, limit: int) -> tuple[int, bytes]:
            begun.set()
            await go_on.wait()
            return await super().read(offset, limit)

    watched.keeper._logs = cast(Any, Slow())
    job = await watched.running(short("gang", replicas=2, queue="lab"))
    watched.clock.advance(61)
    async with watched.house.patience():
        await watched.keeper.look()
        await begun.wait()
        watched.use[job] = 80.0
        await watched.keeper.look()
        go_on.set()
        await watched.keeper.settled()
    assert not await watched.told(job)
    assert not list(watched.bundles._folder.glob("*/*"))
