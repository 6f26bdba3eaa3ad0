"""Ranks that wait for each other in every step: who is slow shows in how long each waits, as all make the same steps."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from corral.kernel.ids import JobId
from corral.model.health.ledger import HealthTerms
from corral.model.health.signs import SignKind
from corral.model.store_writes import Intent, IntentKind
from corral.monitor.health.watch import Watch

JOB = JobId("gang")


def watched(waits: Mapping[int, float | None], *, seconds: float = 900.0, steps_per_second: float = 2.0) -> Watch:
    """A watch that has heard a gang whose tasks make the same steps and wait for a part of their time."""
    watch = Watch(HealthTerms())
    at = 0.0
    while at <= seconds:
        said = {index: None if part is None else at * part for index, part in waits.items()}
        step = at * steps_per_second
        others = [["worker", index, step, at, None, waited] for index, waited in said.items() if index]
        report = {"at": at, "step": step, "waited": said[0]}
        data = {"jobAttempt": 0, "role": "worker", "index": 0, "report": report, "others": others}
        heard = [Intent(int(at), JOB, IntentKind.WORK_REPORTED, "runtime", at, data)]
        watch.heard(heard, lambda job, key: f"local/n{key.index}", at)
        at += 10.0
    return watch


def scores(watch: Watch) -> dict[str, float]:
    return {each.task: round(each.score, 3) for each in watch.scores(JOB, 0).items if each.score is not None}


def slow(watch: Watch) -> list[str]:
    return [each.node for each in watch.ledger.entries if each.what == SignKind.SLOW_TASK]


def test_the_rank_that_the_others_wait_for_has_a_lower_score_and_is_a_sign_of_its_node() -> None:
    watch = watched({0: 0.55, 1: 0.05, 2: 0.55})
    assert scores(watch) == {"worker-1": 0.5, "worker-0": pytest.approx(1.333, abs=0.01), "worker-2": 1.333}
    first = watch.scores(JOB, 0).items[0]
    assert (first.task, first.steps_per_second) == ("worker-1", 2.0)
    assert first.waits == pytest.approx(0.05)
    assert slow(watch) == ["local/n1"]
    (entry,) = [each for each in watch.ledger.entries if each.what == SignKind.SLOW_TASK]
    assert entry.reason.endswith("without their waits for each other")


def test_a_gang_that_mostly_communicates_has_no_slow_rank() -> None:
    watch = watched({0: 0.95, 1: 0.94, 2: 0.96})
    assert all(0.97 < each < 1.03 for each in scores(watch).values())
    assert slow(watch) == []


def test_one_rank_that_does_not_tell_its_waits_leaves_all_with_their_real_pace() -> None:
    watch = watched({0: 0.5, 1: None, 2: 0.5})
    assert set(scores(watch).values()) == {1.0} and slow(watch) == []


def test_a_rank_whose_waits_are_longer_than_its_time_does_not_break_the_scores() -> None:
    watch = watched({0: 7.0, 1: 0.0, 2: 0.5})
    assert scores(watch)["worker-1"] < 0.5 and watch.scores(JOB, 0).items[-1].waits == 1.0
