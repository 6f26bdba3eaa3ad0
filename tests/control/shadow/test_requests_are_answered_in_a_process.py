"""Control answers a request to compare a candidate from a process of its own, with bounds, one after the other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from starlette.applications import Starlette

from corral.control import shadow_requests
from corral.control.shadow.comparison import Question, compare
from corral.control.shadow.lives import CandidateRules
from corral.control.shadow.source import FolderSource
from corral.control.shadow_requests import ShadowRequests
from corral.control.what_if.forked import Fork, ForkLimits
from corral.kernel.errors import CorralError, NotFound, Unavailable
from corral.model.policy_shadow import ShadowQuestion, ShadowReport
from corral.model.what_if_progress import COMPARING, WAITING, WhatIfProgress
from tests.control.core.virtual import BEGIN
from tests.control.shadow.shadows import kept_journal
from tests.waiting import pause

SRTF = ShadowQuestion("srtf", None, "srtf", BEGIN, None, False, 60.0, 20)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal of a server with jobs that wait for one node."""
    return kept_journal(tmp_path_factory.mktemp("kept") / "journal", jobs=200, seconds=400_000.0)


def requests(folder: Path | None, **limits: Any) -> ShadowRequests:
    """What answers by the journal of a folder."""
    return ShadowRequests(lambda: folder, lambda: BEGIN + 400_000.0, ForkLimits(**limits))


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The processes that were forked."""
    found: list[int] = []

    class Noted(Fork):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            found.append(self._pid)

    monkeypatch.setattr(shadow_requests, "Fork", Noted)
    yield found
    assert not [pid for pid in found if Path(f"/proc/{pid}").exists()]


async def _progress(asked: ShadowRequests, number: str) -> WhatIfProgress | None:
    """How far a request is, as control's door tells it."""
    app = Starlette(routes=list(asked.routes()))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://control") as client:
        told = await client.get(f"/policy-shadow/{number}/progress")
    return msgspec.json.decode(told.content, type=WhatIfProgress | None)


def _endless(question: ShadowQuestion, folder: Path, progress: Any) -> bytes:
    """Begin to compare, and never end."""
    progress.come_to(question.since)
    while True:
        time.sleep(60)


async def test_the_answer_is_what_a_comparison_here_would_be(folder: Path, forks: list[int]) -> None:
    found = msgspec.json.decode(await requests(folder).answer(SRTF), type=ShadowReport)
    assert found == compare(FolderSource(folder), Question(CandidateRules("srtf"), "srtf", BEGIN))
    assert found.total.decisions.only_candidate > 100 and len(forks) == 1


async def test_a_part_of_it_and_other_documents(folder: Path) -> None:
    closed = '{"apiVersion":"corral.dev/v1alpha1","kind":"Queue","name":"default","limit":{"devices":"0"}}'
    question = msgspec.structs.replace(SRTF, policy="", documents=(closed,), since=BEGIN + 3600, until=BEGIN + 7200)
    found = msgspec.json.decode(await requests(folder).answer(question), type=ShadowReport)
    assert found.total.in_force.started >= 3 and found.total.candidate.started == 0


@pytest.mark.parametrize("there", [False, True])
async def test_a_server_that_keeps_no_journal_says_so(tmp_path: Path, there: bool) -> None:
    with pytest.raises(NotFound, match="keeps no journal; start it with `journal_days` above 0"):
        await requests(tmp_path / "journal" if there else None).answer(SRTF)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"policy": "nope"}, "There is no policy 'nope'"),
        ({"since": BEGIN + 1e7}, "before the time from which it is to be compared"),
    ],
)
async def test_what_cannot_be_compared_is_refused(folder: Path, more: dict[str, Any], says: str) -> None:
    with pytest.raises(CorralError, match=says) as refused:
        await requests(folder).answer(msgspec.structs.replace(SRTF, **more))
    assert refused.value.status < 500


async def test_a_report_that_is_too_large_to_be_sent_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadow_requests, "_MOST_REPORT", 1000)
    with pytest.raises(CorralError, match="compare fewer hours, or list fewer differences") as refused:
        await requests(folder).answer(SRTF)
    assert (refused.value.status, refused.value.code) == (400, "report-too-large")


def _large(question: ShadowQuestion, folder: Path, progress: Any) -> bytes:
    """Take much memory."""
    return bytes(bytearray(1 << 30))[:1]


@pytest.mark.parametrize(
    ("compared", "limits", "code"),
    [(_large, {"memory": 64 << 20}, "question-too-large"), (_endless, {"seconds": 0.5}, "question-too-long")],
)
async def test_memory_and_time_are_bounded(
    folder: Path, forks: list[int], monkeypatch: pytest.MonkeyPatch, compared: Any, limits: dict[str, Any], code: str
) -> None:
    monkeypatch.setattr(shadow_requests, "_compared", compared)
    with pytest.raises(Unavailable, match="compare fewer hours") as refused:
        await requests(folder, advice="compare fewer hours", **limits).answer(SRTF)
    assert refused.value.code == code and len(forks) == 1


async def test_the_next_request_waits_and_is_told_so_and_a_cancelled_one_leaves_no_process(
    folder: Path, forks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadow_requests, "_compared", _endless)
    asked = requests(folder)
    first = asyncio.create_task(asked.answer(SRTF, "first"))
    begun = time.monotonic()
    while (told := await _progress(asked, "first")) is None or told.stage != COMPARING:
        await asyncio.sleep(pause(begun))
    assert told.fraction == 0.0 and told.says == "Compared to 2001-09-09T01:46:40.000Z."
    second = asyncio.create_task(asked.answer(SRTF, "second"))
    await asyncio.sleep(0)
    waiting = await _progress(asked, "second")
    assert waiting is not None and waiting.stage == WAITING
    with pytest.raises(Unavailable, match="Another policy is being compared"):
        await asked.answer(SRTF, patience=0.0)
    for task in (second, first):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await _progress(asked, "first") is None and len(forks) == 1
