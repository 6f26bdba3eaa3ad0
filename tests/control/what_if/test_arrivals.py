"""Jobs that arrive in a course are drawn from the journal's jobs of the same hours."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from corral.control.core.driver import Work
from corral.control.forecast.forecasts import Moment
from corral.control.journal.blocks import BlockReader
from corral.control.journal.folder import JournalFolder
from corral.control.what_if.arrivals import Arrivals, drawn, recorded_arrivals
from corral.control.what_if.changes import Changes
from corral.control.what_if.course import play
from corral.control.what_if.progress import QuestionProgress
from corral.control.what_if.questions import Questions, _parts, _Played
from corral.kernel.errors import InvalidInput
from corral.model.what_if import DAY, LAST_WEEK, Courses, Question
from corral.service.what_if.comparison import compare
from tests.control.core.virtual import BEGIN
from tests.control.journal.journals import Journaled
from tests.examples import at_least

HOUR = 3600.0


def recorded(days: float, *hours: int, queue: str = "default") -> tuple[Journaled, Arrivals]:
    """A journal of so many days in which three jobs come in each of these hours of the day, and its arrivals."""
    played = Journaled(nodes=1)
    for day in range(int(days)):
        for hour in hours:
            for number in range(3):
                at = day * DAY + hour * HOUR + number * 600.0
                played.submit(f"day-{day}-{number}", at, devices=1, work=Work(60.0), queue=queue)
    played.run(days * DAY)
    played.submit("last", days * DAY, work=Work(1.0))
    played.run(days * DAY + 2.0)
    played.blocks.close()
    return played, recorded_arrivals(BlockReader(io.BytesIO(played.file.getvalue())), BEGIN + days * DAY)


def hours(arrivals: Arrivals, days: float, seed: int = 0) -> list[int]:
    """The hours after the end of the journal in which jobs arrive within a day."""
    now = BEGIN + days * DAY
    return [int((new.created_at - now) // HOUR) for new in drawn(arrivals, now, DAY, seed, ["default"])]


def test_they_come_in_the_same_hours_of_the_week() -> None:
    _, found = recorded(14, 2, 7)
    assert hours(found, 14) == [2, 2, 2, 7, 7, 7]
    assert {each.job.name.partition("-")[0] for each in found.jobs} == {"day", "last"}
    now = BEGIN + 14 * DAY
    names = {new.name for new in drawn(found, now, DAY, 0, ["default"])}
    assert names <= {f"day-{day}-{number}" for day in (0, 7) for number in range(3)}, "of the same day of the week"


def test_a_journal_younger_than_a_week_gives_those_of_the_same_hour_of_the_day() -> None:
    _, found = recorded(3, 5)
    assert hours(found, 3) == [5, 5, 5]


def test_equal_seeds_draw_equal_jobs_and_others_do_not() -> None:
    _, found = recorded(14, 2, 7)
    now = BEGIN + 14 * DAY
    one, same, other = (list(drawn(found, now, DAY, seed, ["default"])) for seed in (1, 1, 2))
    assert one == same != other
    assert len({each.id for each in one}) == len(one)
    assert all(now <= each.created_at < now + DAY for each in one)
    assert [each.created_at for each in one] != [each.created_at for each in other]


def test_their_number_is_bounded_and_queues_that_are_gone_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    days = at_least(2, 14)
    _, found = recorded(days, *range(24))
    now = BEGIN + days * DAY
    assert len(list(drawn(found, now, DAY, 0, ["default"]))) == 72
    assert list(drawn(found, now, DAY, 0, ["other"])) == []
    monkeypatch.setattr("corral.control.what_if.arrivals.MOST_ARRIVALS", 10)
    assert len(list(drawn(found, now, DAY, 0, ["default"]))) == 10


def test_a_course_has_them() -> None:
    played, found = recorded(2, 1, 2, 3)
    now = BEGIN + 2 * DAY + 2.0
    new = tuple(drawn(found, now, DAY, 0, ["default"]))
    plain, busy = (
        play(played.core, Changes(users=found.users, arrivals=each), (), now=now, horizon=DAY, seed=0)
        for each in ((), new)
    )
    assert (plain.arrivals, busy.arrivals) == (0, 9)
    assert sum(each.started for each in plain.queues.values()) == 0
    assert sum(each.started for each in busy.queues.values()) > 0
    assert all(later >= at for at, later in pairwise(busy.times))


def test_a_journal_without_a_whole_hour_is_refused() -> None:
    with pytest.raises(InvalidInput, match="has no whole hour from which arrivals could be drawn"):
        recorded_arrivals([], BEGIN)


def test_a_question_has_them_before_and_after(tmp_path: Path) -> None:
    played, _ = recorded(2, 1, 2, 3)
    folder = JournalFolder(tmp_path / "journal", most_bytes=1 << 30, most_seconds=1e9)
    for data in BlockReader(io.BytesIO(played.file.getvalue())):
        folder.add(data, BEGIN)
    folder.close()
    moment = Moment(BEGIN + 2 * DAY + 2.0, "s1", "r1", ())
    question = Question(DAY, (0, 1), arrivals=LAST_WEEK)
    found = msgspec.msgpack.decode(asked(played, tmp_path / "journal", question, moment), type=_Played)
    assert found.arrival_days == pytest.approx(2.0, abs=0.01)
    before, after = tuple(found.before.values()), tuple(found.after.values())
    counts = [each.arrivals for each in after]
    assert [each.arrivals for each in before] == counts and min(counts) >= 9
    assert before[0].queues == after[0].queues
    told = compare(Courses(moment.at, 0, (), before, after, arrival_days=2.0),
                   horizon=DAY, changes=(), shown=lambda queue: True)  # fmt: skip
    mean = f"{sum(counts) / 2:,.0f}"
    assert told.assumptions[0] == f"{mean} other jobs arrive, as in the same hours of the last 2.0 days."
    with pytest.raises(InvalidInput, match="keeps no journal from which arrivals could be drawn"):
        asked(played, tmp_path / "none", question, moment)


def asked(played: Journaled, folder: Path, question: Question, moment: Moment) -> bytes:
    """The courses of a question, played without a fork."""
    nothing: Any = None
    presenter: Any = SimpleNamespace(described=lambda clusters: ())
    questions = Questions(
        nothing, lambda: played.core, default=lambda: played.configured.policy, presenter=presenter, journal=folder
    )
    parts = _parts(question.seeds, ())
    (counter,) = QuestionProgress(len(question.seeds)).shared_by([len(parts)])
    return questions._played(played.core, question, moment, parts, counter)
