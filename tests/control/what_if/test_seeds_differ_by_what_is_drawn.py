"""Courses of several seeds differ by run times that are drawn; where none is, one course is played for all seeds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from corral.control.core.core import Core
from corral.control.forecast.courses import HORIZON
from corral.control.forecast.forecasts import Moment
from corral.control.what_if import questions
from corral.control.what_if.changes import Changes
from corral.control.what_if.course import play
from corral.control.what_if.progress import QuestionProgress
from corral.control.what_if.questions import Questions, _known_courses, _parts, _Played
from corral.model.what_if import AddedNodes, Course, PastRun, Question
from tests.control.core.virtual import Played

SEEDS = (0, 1, 2)
PAST = tuple(PastRun("ann", f"job-{at}", "default", 2.0, 600.0 * at) for at in range(1, 9))
QUESTION = Question(HORIZON, SEEDS, add_nodes=(AddedNodes(1, "local/node0"),))


def waiting(**more: Any) -> Played:
    """A cluster on which some of eight jobs wait."""
    played = Played(nodes=1, devices=4)
    for number in range(8):
        played.submit(f"job-{number}", devices=2, **more)
    played.settle()
    return played


def answered(
    monkeypatch: pytest.MonkeyPatch, played: Played, question: Question, past: tuple[PastRun, ...]
) -> tuple[_Played, list[int]]:
    """The courses of a question, played without a fork, and the seeds of those that were played."""
    seeds = list[int]()

    def counted(core: Core, changes: Changes, past: tuple[PastRun, ...], *, seed: int, **more: Any) -> Course:
        seeds.append(seed)
        return play(core, changes, past, seed=seed, **more)

    monkeypatch.setattr(questions, "play", counted)
    nothing: Any = None
    presenter: Any = SimpleNamespace(described=lambda clusters: ())
    asked = Questions(nothing, lambda: played.core, default=lambda: played.core.policy, presenter=presenter)
    parts, progress = _parts(question.seeds, ()), QuestionProgress(len(question.seeds))
    (counter,) = progress.shared_by([len(parts)])
    moment = Moment(played.driver.now, "s1", "r1", past)
    found = msgspec.msgpack.decode(asked._played(played.core, question, moment, parts, counter), type=_Played)
    assert progress.told().fraction == 1.0 and progress.told().course == len(question.seeds)
    return found, seeds


def alone(played: Played, seed: int, past: tuple[PastRun, ...]) -> Course:
    """The course as things are of one seed."""
    return play(played.core, Changes(), past, now=played.driver.now, horizon=HORIZON, seed=seed)


def test_a_course_without_draws_is_played_once(monkeypatch: pytest.MonkeyPatch) -> None:
    played = waiting(maxDuration=3600)
    found, seeds = answered(monkeypatch, played, QUESTION, PAST)
    assert seeds == [0, 0], "one as things are, one with the change"
    assert [*found.before] == [*found.after] == [*SEEDS]
    assert [*found.before.values()] == [alone(played, seed, PAST) for seed in SEEDS]
    assert found.after[2] == found.after[0] != found.before[0]


def test_courses_with_draws_are_played_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    played = waiting()
    found, seeds = answered(monkeypatch, played, QUESTION, PAST)
    assert seeds == [*SEEDS, *SEEDS]
    assert [*found.before.values()] == [alone(played, seed, PAST) for seed in SEEDS]
    assert found.before[0] != found.before[1]


def test_what_ran_where_is_told_of_the_first_seed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = answered(monkeypatch, waiting(maxDuration=3600), msgspec.structs.replace(QUESTION, timeline=True), ())
    assert [bool(each.stays) for each in found.before.values()] == [True, False, False]
    assert [len(each.nodes) for each in found.after.values()] == [2, 0, 0]
    assert found.after[1] == found.after[0].without_stays


@pytest.mark.parametrize(("more", "known"), [({"maxDuration": 3600}, SEEDS), ({}, (0,))])
def test_a_forecast_without_draws_knows_the_course_of_every_seed(more: dict[str, Any], known: tuple[int, ...]) -> None:
    first = alone(waiting(**more), 0, PAST)
    forecast: Any = SimpleNamespace(course=lambda seed: first if seed == 0 else None)
    assert _known_courses(forecast, QUESTION) == dict.fromkeys(known, first)
    assert _known_courses(forecast, msgspec.structs.replace(QUESTION, horizon_seconds=60.0)) == {}
