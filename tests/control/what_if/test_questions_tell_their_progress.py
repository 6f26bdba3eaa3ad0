"""A question tells how far it is, waits for its turn for a bounded time, and its processes end with its caller."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from corral.control.forecast.forecasts import Moment
from corral.control.what_if import turns
from corral.control.what_if.forked import USUAL, Fork
from corral.control.what_if.progress import LOOKS, QuestionProgress
from corral.control.what_if.questions import Questions
from corral.kernel.errors import Unavailable
from corral.model.what_if import DAY, Question
from corral.model.what_if_progress import AFTER, BEFORE, PREPARING, READING, WAITING
from tests.control.core.virtual import BEGIN
from tests.control.what_if.test_arrivals import recorded


def test_the_stages_of_a_question_are_told() -> None:
    progress = QuestionProgress(2)
    assert (progress.told().stage, progress.told().courses) == (WAITING, 2)
    first, second = progress.shared_by([2, 1])
    assert (progress.told().stage, progress.told().course) == (PREPARING, 0)
    first.begin(READING)
    assert progress.told().stage == READING
    first.begin(BEFORE)
    for _ in range(LOOKS):
        first.look()
    told = progress.told()
    assert (told.stage, told.course) == (BEFORE, 1) and told.fraction == pytest.approx(1 / 3)
    first.begin(AFTER)
    second.begin(AFTER)
    for _ in range(LOOKS):
        second.look()
    second.course_done()
    first.course_done()
    told = progress.told()
    assert (told.stage, told.course) == (AFTER, 2) and told.fraction == pytest.approx(2 / 3)
    for _ in range(LOOKS):
        first.look()
    first.course_done()
    told = progress.told()
    assert (told.stage, told.course, told.fraction) == (AFTER, 2, 1.0)


async def test_a_forked_process_counts_in_memory_that_its_parent_reads() -> None:
    progress = QuestionProgress(1)
    (counter,) = progress.shared_by([1])

    def compute() -> bytes:
        counter.begin(AFTER)
        counter.look()
        return b""

    fork = Fork(compute, USUAL)
    try:
        await fork.answer()
    finally:
        await fork.end()
    assert (progress.told().stage, progress.told().fraction) == (AFTER, 1 / LOOKS)


def asking(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Questions:
    """Questions about a small cluster, whose forked processes write their number and never end."""

    def never(*_: object) -> bytes:
        (folder / str(os.getpid())).touch()
        while True:
            time.sleep(60)

    played, _ = recorded(2, 1, 2, 3)
    moment = Moment(BEGIN + 2 * DAY + 2.0, "s1", "r1", ())

    async def now() -> Moment:
        return moment

    forecasts: Any = SimpleNamespace(moment=now, of=lambda moment: None)
    presenter: Any = SimpleNamespace(described=lambda clusters: ())
    made = Questions(forecasts, lambda: played.core, default=lambda: played.configured.policy, presenter=presenter)
    monkeypatch.setattr(made, "_played", never)
    return made


async def begun(folder: Path, count: int) -> list[Path]:
    """The processes that have begun, in /proc."""
    while len(found := list(folder.iterdir())) < count:
        await asyncio.sleep(0.01)
    return [Path("/proc") / each.name for each in found]


PROCESSES = min(2, os.cpu_count() or 1)
"""Those of a question with one seed: a course as things are, and one with the changes."""


async def test_the_processes_of_a_question_end_with_its_caller(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:  # fmt: skip
    questions = asking(monkeypatch, tmp_path)
    working = asyncio.create_task(questions.answer(Question(DAY, (0,)), "first"))
    processes = await begun(tmp_path, PROCESSES)
    assert questions.progress("other") is None and questions.progress("first") is not None
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert not any(each.exists() for each in processes)
    assert questions.progress("first") is None


async def test_the_next_question_waits_its_turn_and_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    questions = asking(monkeypatch, tmp_path)
    first = asyncio.create_task(questions.answer(Question(DAY, (0,)), "first"))
    await begun(tmp_path, PROCESSES)
    second = asyncio.create_task(questions.answer(Question(DAY, (0,)), "second"))
    await asyncio.sleep(0)
    told = questions.progress("second")
    assert told is not None and told.stage == WAITING
    with pytest.raises(Unavailable, match="Another what-if question is being answered"):
        await questions.answer(Question(DAY, (0,)), patience=0.01)
    monkeypatch.setattr(turns, "_MOST_WAITING", 1)
    with pytest.raises(Unavailable, match="Another what-if question is being answered"):
        await questions.answer(Question(DAY, (0,)), patience=600.0)
    first.cancel()
    await begun(tmp_path, 2 * PROCESSES)  # its turn has come
    second.cancel()
    await asyncio.gather(first, second, return_exceptions=True)


async def test_a_question_is_played_with_its_progress(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    questions = asking(monkeypatch, tmp_path)
    monkeypatch.undo()
    seen = []
    working = asyncio.create_task(questions.answer(Question(DAY, (0, 1)), "asked"))
    while not working.done():
        seen.append(questions.progress("asked"))
        await asyncio.sleep(0.001)
    courses = await working
    assert len(courses.before) == len(courses.after) == 2
    fractions = [each.fraction for each in seen if each is not None]
    assert fractions == sorted(fractions)
