"""Deletions are repeated until they succeed, and do not pile up before an unresponsive cluster; in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from corral.engines.base import ExecSession
from corral.engines.kubernetes.logs.copier import LogCopier
from corral.engines.kubernetes.pods.attempt_records import Ledger, Record
from corral.engines.kubernetes.pods.calls import PodCalls
from corral.engines.kubernetes.pods.termination import PodTerminator
from corral.engines.kubernetes.watch.cluster_state import ClusterView
from corral.kernel.errors import Unavailable
from corral.kernel.ids import AttemptId
from corral.model.launch import Started
from corral.storage.log_files import LogStore
from tests.engines.kubernetes.virtual_time import virtually

FIRST = AttemptId("01jd3c9x8aaaa.0.worker.0.0")


class SlowCluster:
    """Answers no deletion for a while, then reports that it is busy; sees every pod."""

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
    """Run the sweep for a pod that should be gone; returns the cluster with the calls that it got."""
    cluster = SlowCluster(answer)

    async def work() -> None:
        loop = asyncio.get_running_loop()
        ledger = Ledger(loop.time)
        record = ledger.expect(FIRST, "a", frozenset(), 0.0)
        record.uid, record.kill_at, record.forced_at = "u1", 1.0, 20.0
        logs = LogCopier(cast(Any, None), "x", LogStore(folder))
        terminator = PodTerminator(
            ledger,
            cast(PodCalls, cluster),
            logs,
            cast(ClusterView, cluster),
            report=lambda event: None,
            execute=cast(Any, None),
            wall=loop.time,
        )
        tasks: set[asyncio.Task[None]] = set()

        def spawn(work: Coroutine[Any, Any, None]) -> None:
            tasks.add(asyncio.ensure_future(work))

        tasks.add(asyncio.ensure_future(terminator.sweep(spawn)))
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


class StumblingCluster:
    """Accepts labels; runs no command and deletes no pod until it has recovered."""

    def __init__(self) -> None:
        self.stumbles = True
        self.deleted: list[float] = []
        self.sent: list[str] = []
        self.says = [b"se", b"nt\n"]
        self.under_way = asyncio.Event()
        self.answers = asyncio.Event()

    async def label(self, attempt: AttemptId, uid: str, labels: Mapping[str, str]) -> None:
        pass

    async def delete(self, attempt: AttemptId, uid: str, grace_seconds: float, *, force: bool = False) -> None:
        if self.stumbles:
            raise Unavailable("kubernetes-unreachable", "it stumbles")
        self.deleted.append(grace_seconds)

    async def execute(self, attempt: AttemptId, command: Sequence[str]) -> ExecSession:
        self.under_way.set()
        await self.answers.wait()
        if self.stumbles:
            raise Unavailable("kubernetes-unreachable", "it stumbles")
        self.sent.append(command[-1])
        return cast(ExecSession, self)

    async def output(self) -> AsyncIterator[bytes]:
        for piece in self.says:
            yield piece

    async def close(self) -> None:
        pass


def stoppable(cluster: StumblingCluster, folder: Path) -> tuple[PodTerminator, Record]:
    """A running task, and the part that ends it."""
    loop = asyncio.get_running_loop()
    ledger = Ledger(loop.time)
    record = ledger.expect(FIRST, "a", frozenset(), 0.0)
    record.uid, record.started = "u1", Started(FIRST, 0.0, "", {}, "u1")
    terminator = PodTerminator(
        ledger,
        cast(PodCalls, cluster),
        LogCopier(cast(Any, None), "x", LogStore(folder)),
        cast(ClusterView, cluster),
        report=lambda event: None,
        execute=cluster.execute,
        wall=loop.time,
    )
    return terminator, record


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_signal_that_was_not_sent_is_sent_when_the_order_is_repeated_and_then_no_more(
    tmp_path: Path, cancelled: bool
) -> None:
    async def work() -> StumblingCluster:
        cluster = StumblingCluster()
        terminator, record = stoppable(cluster, tmp_path)
        first = asyncio.ensure_future(terminator.stop(record, 60.0, "USR1"))
        await cluster.under_way.wait()
        if cancelled:
            first.cancel()
        else:
            cluster.answers.set()
        with pytest.raises(asyncio.CancelledError if cancelled else Unavailable):
            await first
        cluster.stumbles = False
        cluster.answers.set()
        for grace in (60.0, 60.0, 30.0):
            await terminator.stop(record, grace, "USR1")
        assert record.kill_at == 30.0
        return cluster

    cluster = virtually(work())
    assert cluster.sent == ["USR1"] and not cluster.deleted


@pytest.mark.parametrize(
    ("says", "deleted"),
    [([b"ERROR: ld.so: object 'x.so' cannot be preloaded: ignored.\n", b"sent\n"], []), ([b"sh: not sent\n"], [30.0])],
)
def test_a_signal_was_sent_where_a_line_says_so_whatever_was_printed_before(
    tmp_path: Path, says: list[bytes], deleted: list[float]
) -> None:
    async def work() -> StumblingCluster:
        cluster = StumblingCluster()
        cluster.stumbles, cluster.says = False, says
        cluster.answers.set()
        terminator, record = stoppable(cluster, tmp_path)
        await terminator.stop(record, 30.0, "USR1")
        return cluster

    cluster = virtually(work())
    assert cluster.sent == ["USR1"] and cluster.deleted == deleted
