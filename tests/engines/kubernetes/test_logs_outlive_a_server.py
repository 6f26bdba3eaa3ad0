"""A new leader with an empty disk resumes a pod's log exactly where the old one had archived it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.engines.kubernetes.api.resources import Call
from corral.engines.kubernetes.logs.copier import GONE, LogCopier
from corral.engines.kubernetes.logs.log_lines import GAP, Position
from corral.kernel.errors import NotFound
from tests.engines.kubernetes.test_log_lines import stamped
from tests.examples import examples
from tests.storage.moody import TASK, Machine, Moody

Lines = list[tuple[int, bytes]]
BEFORE: Lines = [(4, b"one\n"), (4, b"two\n"), (5, b"three\n")]
AFTER: Lines = [(5, b"four\n"), (6, b"five\n")]


class Kubelet:
    """Has one pod's log and returns it from a given second on."""

    def __init__(self, lines: Lines) -> None:
        self.lines = list(lines)
        self.gone = False

    @contextlib.asynccontextmanager
    async def stream(self, call: Call, *, params: Mapping[str, str], idle: float) -> AsyncIterator[Any]:
        if self.gone:
            raise NotFound("kubernetes-not-found", "there is no such pod")
        since = int(params["sinceTime"][17:19]) if "sinceTime" in params else 0

        async def chunks() -> AsyncIterator[bytes]:
            yield stamped(self.lines, since=since)
            if "follow" in params:
                await asyncio.Event().wait()

        yield chunks()


def copies(kubelet: Kubelet, machine: Machine) -> LogCopier:
    made = LogCopier(cast(Any, kubelet), "x", machine.store, "follow", machine.archiver)
    machine.archiver.growing = made.growing
    return made


def copied(machine: Machine) -> bytes:
    path = Path(machine.store.path(TASK, "all"))
    return path.read_bytes() if path.exists() else b""


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not holds():
            await asyncio.sleep(0.001)


def text(lines: Lines) -> bytes:
    return b"".join(line for _, line in lines)


async def lead(kubelet: Kubelet, machine: Machine) -> None:
    """Follow the log until all of it is copied, archive it, and lose the machine."""
    leading = copies(kubelet, machine)
    leading.follow(TASK, "a")
    await until(lambda: text(kubelet.lines[-1:]) in copied(machine))
    await machine.archiver.sweep()
    await leading.close()


@pytest.fixture
def remote() -> Moody:
    return Moody()


async def test_the_log_goes_on_whole_on_an_empty_disk(remote: Moody, tmp_path: Path) -> None:
    kubelet = Kubelet(BEFORE)
    await lead(kubelet, Machine(tmp_path / "one", remote.archive()))
    kubelet.lines += AFTER
    heir = Machine(tmp_path / "two", remote.archive())
    assert await copies(kubelet, heir).finish(TASK, readable=True) == len(text(BEFORE + AFTER))
    assert copied(heir) == text(BEFORE + AFTER)
    await heir.archiver.sweep()
    assert await Machine(tmp_path / "three", remote.archive()).read() == text(BEFORE + AFTER)


async def test_what_the_pod_cannot_give_any_more_is_a_marker(remote: Moody, tmp_path: Path) -> None:
    kubelet = Kubelet(BEFORE)
    await lead(kubelet, Machine(tmp_path / "one", remote.archive()))
    kubelet.lines = [(9, b"late\n")]
    heir = Machine(tmp_path / "two", remote.archive())
    await copies(kubelet, heir).finish(TASK, readable=True)
    assert copied(heir) == text(BEFORE) + GAP + b"late\n"


async def test_of_a_pod_that_is_gone_what_was_archived_stays(remote: Moody, tmp_path: Path) -> None:
    kubelet = Kubelet(BEFORE)
    await lead(kubelet, Machine(tmp_path / "one", remote.archive()))
    kubelet.gone = True
    heir = Machine(tmp_path / "two", remote.archive())
    await copies(kubelet, heir).finish(TASK, readable=False)
    assert copied(heir) == text(BEFORE) + GONE


async def test_a_log_that_was_finished_is_not_finished_again(remote: Moody, tmp_path: Path) -> None:
    kubelet, one = Kubelet(BEFORE), Machine(tmp_path / "one", remote.archive())
    await copies(kubelet, one).finish(TASK, readable=True)
    await one.archiver.sweep()
    kubelet.lines.append((30, b"never printed\n"))
    heir = Machine(tmp_path / "two", remote.archive())
    assert await copies(kubelet, heir).finish(TASK, readable=True) == len(text(BEFORE))
    assert copied(heir) == text(BEFORE)


async def test_who_leads_again_has_what_was_copied_elsewhere_meanwhile(remote: Moody, tmp_path: Path) -> None:
    kubelet = Kubelet(BEFORE)
    one, two = (Machine(tmp_path / name, remote.archive()) for name in ("one", "two"))
    await lead(kubelet, one)
    kubelet.lines += AFTER
    await lead(kubelet, two)
    again = Machine(tmp_path / "one", remote.archive())
    kubelet.lines.append((8, b"six\n"))
    await copies(kubelet, again).finish(TASK, readable=True)
    assert copied(again) == text([*BEFORE, *AFTER, (8, b"six\n")])


async def test_a_store_that_is_away_keeps_no_log_from_its_end(
    remote: Moody, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.engines.kubernetes.logs.copier._LAST_SECONDS", 4.0)
    kubelet = Kubelet(BEFORE)
    await lead(kubelet, Machine(tmp_path / "one", remote.archive()))
    kubelet.lines += AFTER
    remote.away = True
    heir = Machine(tmp_path / "two", remote.archive())
    await copies(kubelet, heir).finish(TASK, readable=True)
    assert copied(heir) == text(BEFORE + AFTER), "read anew, from the pod"
    remote.away = False
    await heir.archiver.sweep()
    assert await Machine(tmp_path / "three", remote.archive()).read() == text(BEFORE + AFTER)


lines = st.lists(st.tuples(st.integers(4, 30), st.binary(max_size=9).map(lambda it: it.replace(b"\n", b"") + b"\n")))


@settings(max_examples=examples(40), deadline=None)
@given(lines, st.lists(st.integers(0, 40), max_size=4))
def test_however_often_the_lead_moves_no_line_is_lost_or_doubled(
    tmp_path_factory: pytest.TempPathFactory, printed: Lines, moves: list[int]
) -> None:
    printed = sorted(printed, key=lambda line: line[0])
    folder, remote = tmp_path_factory.mktemp("moves"), Moody()

    async def work() -> bytes:
        kubelet = Kubelet([])
        for number, upto in enumerate(sorted(moves)):
            kubelet.lines = printed[:upto]
            machine = Machine(folder / str(number % 3), remote.archive())  # an earlier leader may lead again
            leading = copies(kubelet, machine)
            leading.follow(TASK, "a")
            await until(lambda machine=machine: copied(machine) == text(kubelet.lines))  # type: ignore[misc]
            await machine.archiver.sweep()
            await leading.close()
        kubelet.lines = printed
        last = Machine(folder / "last", remote.archive())
        await copies(kubelet, last).finish(TASK, readable=True)
        return copied(last)

    assert asyncio.run(work()) == text(printed)


@given(st.integers(0, 1 << 40), st.integers(0, 999_999_999), st.integers(0, 99), st.integers(0, 1 << 40))
def test_a_mark_is_the_position(seconds: int, nanoseconds: int, whole: int, cut: int) -> None:
    position = Position(7, (seconds, nanoseconds), whole, cut)
    assert Position.of_mark(position.mark(), 7) == position
    assert Position.of_mark("not.a.mark.x", 7) == Position.of_mark("", 7) == Position()
