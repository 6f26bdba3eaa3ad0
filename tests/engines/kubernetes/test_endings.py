"""What is due is asked for again and again, and never piles up before a cluster that does not answer; virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, cast

from corral.engines.kubernetes.endings import Endings
from corral.engines.kubernetes.ledger import Ledger
from corral.engines.kubernetes.logs import LogCopies
from corral.engines.kubernetes.podcalls import PodCalls
from corral.engines.kubernetes.view import ClusterView
from corral.kernel.errors import Unavailable
from corral.kernel.ids import AttemptId
from corral.storage.logs import LogStore
from tests.engines.kubernetes.virtual_time import virtually

FIRST = AttemptId("01jd3c9x8aaaa.0.worker.0.0")


class SlowCluster:
    """Answers no deletion for a while, then says that it is busy; sees every pod."""

    trouble = None

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.asked: list[tuple[str, bool]] = []
        self.out = self.most = 0

    async def delete(self, attempt: AttemptId, uid: str, grace_seconds: float, *, force: bool = False) -> None:
        self.asked.append((uid, force))
        self.out += 1
        self.most = max(self.most, self.out)
        await asyncio.sleep(self.seconds)
        self.out -= 1
        raise Unavailable("kubernetes-timeout", "slow")

    def has_pod(self, uid: str) -> bool:
        return True


def swept(seconds: float, folder: Path, answer: float) -> SlowCluster:
    """What was asked while a pod that should long be gone was swept for."""
    cluster = SlowCluster(answer)

    async def work() -> None:
        loop = asyncio.get_running_loop()
        ledger = Ledger(loop.time)
        record = ledger.expect(FIRST, "a", frozenset(), 0.0)
        record.uid, record.kill_at, record.forced_at = "u1", 1.0, 20.0
        logs = LogCopies(cast(Any, None), "x", LogStore(folder))
        endings = Endings(
            ledger,
            cast(PodCalls, cluster),
            logs,
            cast(ClusterView, cluster),
            tell=lambda event: None,
            execute=cast(Any, None),
            wall=loop.time,
        )
        tasks: set[asyncio.Task[None]] = set()

        def spawn(work: Coroutine[Any, Any, None]) -> None:
            tasks.add(asyncio.ensure_future(work))

        tasks.add(asyncio.ensure_future(endings.sweep(spawn)))
        await asyncio.sleep(seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    virtually(work())
    return cluster


def test_a_deletion_that_is_not_answered_is_not_asked_for_a_second_time(tmp_path: Path) -> None:
    cluster = swept(600.0, tmp_path, answer=10_000.0)
    assert cluster.asked == [("u1", False), ("u1", True)]


def test_a_deletion_that_failed_is_asked_for_again(tmp_path: Path) -> None:
    cluster = swept(15.0, tmp_path, answer=3.0)
    assert cluster.asked == [("u1", False)] * len(cluster.asked) and len(cluster.asked) in (3, 4, 5)
    assert cluster.most == 1
