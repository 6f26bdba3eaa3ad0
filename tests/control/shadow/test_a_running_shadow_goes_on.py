"""A candidate goes on beside the policy in force: a report each hour, over restarts, until it is stopped or ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from corral.control import shadow_requests
from corral.control.journal.folder import JournalFolder
from corral.control.running_shadow import FILE, RunningShadows
from corral.control.shadow.comparison import Question, compare
from corral.control.shadow.lives import CandidateRules
from corral.control.shadow.source import FolderSource
from corral.control.shadow_requests import ShadowRequests
from corral.control.what_if.forked import ForkLimits
from corral.kernel.errors import Conflict, InvalidInput, NotFound, Unavailable
from corral.model.policy_shadow import RunningQuestion, RunningShadow, ShadowQuestion
from corral.model.records import rfc3339
from tests.control.core.virtual import BEGIN
from tests.control.shadow.shadows import kept_journal
from tests.waiting import pause

HOUR = 3600.0
FIRST = BEGIN // HOUR * HOUR + HOUR + 120.0
"""Two minutes after the first whole hour of the journal."""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal of a server with jobs that wait for one node."""
    return kept_journal(tmp_path_factory.mktemp("kept") / "journal", jobs=30, seconds=40_000.0)


class Place:
    """A server with a journal and a clock that is set by hand."""

    def __init__(self, folder: Path, journal: Path) -> None:
        self.now = FIRST
        self.journal: Path | None = folder / "journal"
        (folder / "journal").symlink_to(journal)
        self.limits = ForkLimits(advice="compare fewer hours")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[RunningShadows]:
        """The control of one start of the server."""

        async def check(question: ShadowQuestion) -> None:
            if question.policy == "nope":
                raise InvalidInput("policy-unknown", "There is no policy 'nope'.")

        requests = ShadowRequests(lambda: self.journal, lambda: self.now, self.limits)
        shadows = RunningShadows(requests, lambda: self.journal, lambda: self.now, check, look_seconds=0.01)
        begins = asyncio.Event()
        begins.set()
        serving = asyncio.create_task(shadows.run(begins))
        try:
            await until(lambda: is_loaded(shadows))
            yield shadows
        finally:
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving


@pytest.fixture
def place(tmp_path: Path, written: Path) -> Place:
    return Place(tmp_path, written)


def is_loaded(shadows: RunningShadows) -> bool:
    """Whether it knows what ran before the start."""
    try:
        shadows.told()
    except Unavailable:
        return False
    except NotFound:
        pass
    return True


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    begun = time.monotonic()
    while not holds():
        assert time.monotonic() - begun < 120, "it never came"
        await asyncio.sleep(pause(begun))


async def reported(shadows: RunningShadows, at: float) -> RunningShadow:
    """Its state when it has reported up to a time and waits for the next hour, or has ended."""
    await until(
        lambda: (told := shadows.told()).reported_at == rfc3339(at) and (told.state != "running" or bool(told.next_at))
    )
    return shadows.told()


def asked(hours: float = 48.0, **more: Any) -> RunningQuestion:
    end = BEGIN + hours * HOUR
    return RunningQuestion(ShadowQuestion("srtf", None, "srtf", BEGIN, end, False, 60.0, 20, **more), "ann")


async def test_its_report_grows_hour_by_hour_and_is_that_of_a_comparison_from_the_beginning(place: Place) -> None:
    async with place.running() as shadows:
        begun = await shadows.begin(asked())
        assert (begun.state, begun.user, begun.candidate, begun.reported_at) == ("running", "ann", "srtf", None)
        told = await reported(shadows, FIRST)
        assert told.next_at == rfc3339(FIRST - 120.0 + HOUR + 90.0)
        first = shadows.report()
        place.now = FIRST + HOUR
        told = await reported(shadows, place.now)
        assert told.next_at == rfc3339(FIRST - 120.0 + 2 * HOUR + 90.0)
        second = shadows.report()
        assert len(second.hours) == len(first.hours) + 1
        rules = CandidateRules("srtf")
        question = Question(rules, "srtf", BEGIN, place.now, idle_until=place.now)
        assert second == compare(FolderSource(place.journal or Path()), question)
        assert second.total.decisions.otherwise > first.total.decisions.otherwise


async def test_one_goes_on_at_a_time_and_a_stopped_one_keeps_its_report_over_a_restart(place: Place) -> None:
    async with place.running() as shadows:
        await shadows.begin(asked())
        with pytest.raises(Conflict, match="The shadow of srtf, which ann began, goes on; stop it first"):
            await shadows.begin(asked())
        await reported(shadows, FIRST)
        assert (await shadows.stop()).state == "stopped"
        assert (await shadows.stop()).state == "stopped"
    place.now = FIRST + 5 * HOUR
    async with place.running() as shadows:
        told = shadows.told()
        assert (told.state, told.reported_at, told.next_at) == ("stopped", rfc3339(FIRST), None)
        assert shadows.report().candidate == "srtf"
        await shadows.begin(asked())
        await reported(shadows, place.now)


async def test_it_goes_on_after_a_restart_from_the_journal(place: Place) -> None:
    async with place.running() as shadows:
        await shadows.begin(asked())
        await reported(shadows, FIRST)
        before = shadows.report()
    assert place.journal is not None
    assert (place.journal.parent / FILE).stat().st_mode & 0o777 == 0o600
    place.now = FIRST + 3 * HOUR
    async with place.running() as shadows:
        assert shadows.told().state == "running" and shadows.report().begin == before.begin
        await reported(shadows, place.now)
        assert len(shadows.report().hours) == len(before.hours) + 3


async def test_it_ends_by_itself_with_the_report_of_all_of_it(place: Place) -> None:
    async with place.running() as shadows:
        place.now = BEGIN + 2 * HOUR - 10.0
        await shadows.begin(asked(hours=2))
        told = await reported(shadows, place.now)
        assert told.next_at == told.end
        place.now = BEGIN + 9 * HOUR
        told = await reported(shadows, BEGIN + 2 * HOUR)
        assert (told.state, told.error, told.next_at) == ("done", None, None)
        assert shadows.report().total.seconds == 2 * HOUR


async def test_a_report_that_takes_too_long_ends_it_with_a_sentence_and_the_last_report_stays(place: Place) -> None:
    async with place.running() as shadows:
        await shadows.begin(asked())
        await reported(shadows, FIRST)
    place.limits = place.limits._replace(seconds=0.0)
    place.now = FIRST + 2 * HOUR
    async with place.running() as shadows:
        await until(lambda: shadows.told().state == "failed")
        told = shadows.told()
        assert told.error is not None and told.error.code == "question-too-long"
        assert "compare fewer hours" in told.error.message
        assert told.reported_at == rfc3339(FIRST) and shadows.report().candidate == "srtf"
        await shadows.stop()
        assert shadows.told().state == "failed"


async def test_while_nothing_was_decided_there_is_no_report_yet(place: Place, tmp_path: Path) -> None:
    place.journal = tmp_path / "other" / "journal"
    JournalFolder(place.journal, most_bytes=10**9, most_seconds=1e9).close()
    async with place.running() as shadows:
        with pytest.raises(NotFound, match="No candidate goes on beside the policy in force"):
            shadows.told()
        await shadows.begin(asked())
        await until(lambda: shadows.told().next_at is not None)
        assert (shadows.told().state, shadows.told().trouble) == ("running", "")
        with pytest.raises(NotFound, match="no report yet"):
            shadows.report()


async def test_an_hour_in_which_others_are_compared_is_made_up_for_by_the_next(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with place.running() as shadows:
        whole = shadow_requests.ShadowRequests.answer
        busy = Unavailable("comparison-busy", "Another policy is being compared; ask again in a moment.")

        async def refuse(*_: Any, **__: Any) -> bytes:
            raise busy

        monkeypatch.setattr(shadow_requests.ShadowRequests, "answer", refuse)
        await shadows.begin(asked())
        await until(lambda: shadows.told().next_at is not None)
        assert shadows.told().trouble == busy.message
        assert shadows.told().state == "running"
        monkeypatch.setattr(shadow_requests.ShadowRequests, "answer", whole)
        place.now = FIRST + HOUR
        assert (await reported(shadows, place.now)).trouble == ""


async def test_what_cannot_go_on_is_refused_and_nothing_is_begun(place: Place) -> None:
    async with place.running() as shadows:
        with pytest.raises(InvalidInput, match="no policy 'nope'"):
            question = asked().question
            await shadows.begin(RunningQuestion(ShadowQuestion("nope", None, "nope", *_rest(question)), "ann"))
        place.journal = None
        with pytest.raises(NotFound, match="keeps no journal; start it with `journal_days` above 0"):
            await shadows.begin(asked())
        with pytest.raises(NotFound):
            shadows.told()


def _rest(question: ShadowQuestion) -> tuple[Any, ...]:
    return question.since, question.until, question.anew, question.within, question.differences


@pytest.mark.parametrize("content", [b"", b"{}", b"[" * 100_000, b" " * (17 << 20)])
async def test_a_file_that_cannot_be_read_is_left_aside(place: Place, content: bytes) -> None:
    assert place.journal is not None
    (place.journal.parent / FILE).write_bytes(content)
    async with place.running() as shadows:
        with pytest.raises(NotFound, match="No candidate goes on"):
            shadows.told()
        await shadows.begin(asked())
        await reported(shadows, FIRST)


async def test_until_control_has_started_it_says_so(place: Place) -> None:
    async def check(question: ShadowQuestion) -> None: ...

    requests = ShadowRequests(lambda: place.journal, lambda: place.now)
    shadows = RunningShadows(requests, lambda: place.journal, lambda: place.now, check)
    with pytest.raises(Unavailable, match="The server is starting"):
        await shadows.begin(asked())
