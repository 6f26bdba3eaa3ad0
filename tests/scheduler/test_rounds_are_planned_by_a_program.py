"""The programs of `shockwave-program`: their optimum by enumeration, hand-computed cases, and what they do without one."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import product
from math import inf, log
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.scheduler.policy import round_program
from corral.scheduler.policy.round_program import Bidder, Window, first_fit, planned_rounds
from tests.examples import examples

MINUTE = Window(devices=1, rounds=2, round_seconds=100.0)


def counts(found: Sequence[int]) -> list[int]:
    return [each.bit_count() for each in found]


def test_the_logarithm_of_progress_is_linear_between_fifths() -> None:
    window = Window(1, 20, 120.0)
    fresh = Bidder(1, 0.0, 600.0)
    assert [window.worth(fresh, rounds) for rounds in (0, 1, 2, 5, 9)] == pytest.approx(
        [log(1e-6), log(0.2), log(0.4), 0.0, 0.0]
    )
    assert window.worth(Bidder(1, 0.5, 600.0), 0) == pytest.approx((log(0.4) + log(0.6)) / 2)
    assert window.worth(Bidder(1, 0.5, 240.0), 1) == pytest.approx(
        (log(0.6) + log(0.8)) / 2 + (log(0.8) - log(0.6)) / 4
    )


def test_a_late_job_counts_more_within_bounds() -> None:
    assert MINUTE.weight(Bidder(1, 0.0, 500.0, rho=1.0)) == MINUTE.weight(Bidder(1, 0.0, 500.0, rho=0.4)) == 1.0
    assert MINUTE.weight(Bidder(1, 0.0, 500.0, rho=1.5)) == pytest.approx(1.5**12)
    assert MINUTE.weight(Bidder(1, 0.0, 50.0, rho=1.05)) == pytest.approx(1.05**100)
    assert MINUTE.weight(Bidder(1, 0.0, 500.0, rho=1e9)) == pytest.approx(1e4)


def test_the_rounds_that_a_fair_finish_takes() -> None:
    """After the window of 200 s half of the time is left to a job: 50 s make 25 s of service."""
    assert MINUTE.fair(Bidder(1, 0.0, 200.0, fair_in=250.0, share=0.5)) == 2
    assert MINUTE.fair(Bidder(1, 0.0, 125.0, fair_in=250.0, share=0.5)) == 1
    assert MINUTE.fair(Bidder(1, 0.0, 200.0, fair_in=inf, share=0.5)) == 0
    assert MINUTE.fair(Bidder(1, 0.0, 200.0, fair_in=199.0)) == inf, "as in the authors' program"
    assert MINUTE.fair(Bidder(2, 0.0, 200.0, fair_in=199.0)) == 0, "it never runs on one device"
    assert [MINUTE.useful(Bidder(*each)) for each in ((1, 0.0, 1.0), (1, 0.0, 101.0), (2, 0.0, 101.0))] == [1, 2, 0]


def test_a_young_job_gains_more_unless_the_other_would_end_unfairly_or_is_late() -> None:
    """Both need all of the window. Fresh work is worth more, until the old job's fair finish asks for its rounds."""
    young, old = Bidder(1, 0.0, 200.0), Bidder(1, 0.8, 200.0, share=0.5)
    assert planned_rounds([young, old], MINUTE) == [0b11, 0]
    assert planned_rounds([young, old._replace(fair_in=250.0)], MINUTE) == [0, 0b11]
    assert planned_rounds([young, old._replace(fair_in=-5.0)], MINUTE) == [0b11, 0], "nothing can make it fair"
    assert planned_rounds([young, old._replace(fair_in=-5.0, rho=2.0)], MINUTE) == [0, 0b11]


def test_a_short_job_runs_before_a_long_one_that_the_makespan_waits_for() -> None:
    window = Window(1, 20, 120.0)
    short, long = planned_rounds([Bidder(1, 0.0, 120.0), Bidder(1, 0.0, 2400.0)], window)
    assert (short, long) == (1, (1 << 20) - 2)


def test_all_jobs_run_at_once_where_there_is_room() -> None:
    jobs = [Bidder(2, 0.0, 250.0), Bidder(1, 0.3, 1e6, rho=9.0), Bidder(1, 0.0, 1.0)]
    assert planned_rounds(jobs, Window(4, 5, 100.0)) == [0b111, 0b11111, 0b1]
    assert planned_rounds([], Window(0, 5, 100.0)) == []


def test_rounds_that_together_fit_and_cannot_be_packed_are_not_planned() -> None:
    """One round of both devices and two rounds of one are four device-rounds, but they overlap in any case."""
    window = Window(2, 2, 100.0)
    wide, long = planned_rounds([Bidder(2, 0.0, 100.0), Bidder(1, 0.0, 1000.0)], window)
    assert (wide.bit_count(), long.bit_count(), wide & long) == (1, 1, 0)


def piecewise(part: float) -> float:
    """The logarithm between fifths, written out once more."""
    at = min(4, int(part * 5 + 1e-12))
    low, high = log(max(at / 5, 1e-6)), log((at + 1) / 5)
    return low + (high - low) * (part * 5 - at)


def objective(jobs: Sequence[Bidder], window: Window, ran: Sequence[int], weights: Sequence[float]) -> float:
    seconds = [number * window.round_seconds for number in ran]
    parts = [job.done + (1 - job.done) * min(1.0, had / job.left) for job, had in zip(jobs, seconds, strict=True)]
    welfare = sum(weight * piecewise(part) for weight, part in zip(weights, parts, strict=True))
    longest = max(max(0.0, job.left - had) for job, had in zip(jobs, seconds, strict=True))
    return welfare / (len(jobs) * window.rounds) - 1e-3 * longest


def schedules(jobs: Sequence[Bidder], window: Window) -> Iterator[tuple[int, ...]]:
    """All schedules within the devices in which no job has more rounds than it can use."""
    choices = [
        [bits for bits in range(1 << window.rounds) if bits.bit_count() <= -(-job.left // window.round_seconds)]
        for job in jobs
    ]
    for found in product(*choices):
        loads = [sum(job.devices * (bits >> at & 1) for job, bits in zip(jobs, found, strict=True)) for at in
                 range(window.rounds)]  # fmt: skip
        if max(loads) <= window.devices:
            yield found


def ends_fairly(job: Bidder, window: Window, rounds: int) -> bool:
    after = max(0.0, job.left - rounds * window.round_seconds) / job.share
    return window.rounds * window.round_seconds + after <= job.fair_in + 1e-6


def late_weight(job: Bidder, window: Window) -> float:
    power = 100 if job.left < window.round_seconds else 12
    return float(min(1e4, job.rho**power)) if job.rho > 1 else 1.0


@pytest.mark.parametrize("seed", range(12))
def test_the_plan_is_the_optimum_of_all_schedules(seed: int) -> None:
    """Both programs, by enumeration: the most welfare and fairness, then the earliest weighted mean rounds."""
    draw = random.Random(seed)
    window = Window(draw.choice([2, 3]), 3, 120.0)
    jobs = [
        Bidder(
            draw.randint(1, 2),
            draw.choice([0.0, 0.0, draw.uniform(0.0, 0.95)]),
            draw.uniform(30.0, 900.0),
            draw.uniform(0.7, 1.6),
            draw.choice([inf, draw.uniform(360.0, 2000.0), draw.uniform(100.0, 2000.0)]),
            draw.uniform(0.2, 1.0),
        )
        for _ in range(4)
    ]
    every = [(each, counts(each)) for each in schedules(jobs, window)]
    fair = [
        (each, ran)
        for each, ran in every
        if all(ends_fairly(job, window, rounds) for job, rounds in zip(jobs, ran, strict=True))
    ]
    weights = [1.0] * 4 if fair else [late_weight(job, window) for job in jobs]
    found = planned_rounds(jobs, window)
    assert tuple(found) in {each for each, _ in fair or every}
    reached = objective(jobs, window, counts(found), weights)
    best = max(objective(jobs, window, ran, weights) for _, ran in fair or every)
    assert reached == pytest.approx(best, rel=2e-5, abs=1e-7)

    def lateness(each: Sequence[int]) -> float:
        means = [sum(at for at in range(3) if bits >> at & 1) / max(1, bits.bit_count()) for bits in each]
        return sum(weight * mean for weight, mean in zip(weights, means, strict=True))

    soonest = min(lateness(each) for each, ran in every if ran == counts(found))
    assert lateness(found) == pytest.approx(soonest, rel=2e-5, abs=1e-7)


BIDDERS = st.lists(
    st.builds(
        Bidder,
        st.integers(1, 6),
        st.floats(0.0, 0.999),
        st.floats(1.0, 3e8),
        st.floats(0.0, 1e6),
        st.one_of(st.just(inf), st.floats(-1e6, 1e6)),
        st.floats(1e-4, 1.0),
    ),
    max_size=10,
)


@settings(max_examples=examples(40))
@given(BIDDERS, st.builds(Window, st.integers(0, 6), st.integers(1, 6), st.floats(10.0, 1e3)))
def test_a_plan_fits_whatever_is_predicted(jobs: list[Bidder], window: Window) -> None:
    found = planned_rounds(jobs, window)
    assert len(found) == len(jobs)
    for at in range(window.rounds):
        assert sum(job.devices for job, bits in zip(jobs, found, strict=True) if bits >> at & 1) <= window.devices
    for job, bits in zip(jobs, found, strict=True):
        assert bits.bit_count() <= window.useful(job) and bits < 1 << window.rounds


def test_a_search_without_an_answer_gives_way_to_the_first_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three devices: the late job has its two rounds first, the wide one runs after it, and one device stays free."""
    monkeypatch.setattr(round_program, "milp", lambda *words, **options: SimpleNamespace(x=None))
    window = Window(3, 3, 100.0)
    jobs = [Bidder(2, 0.0, 1000.0), Bidder(2, 0.0, 150.0, rho=1.2), Bidder(1, 0.0, 50.0), Bidder(4, 0.0, 50.0)]
    assert planned_rounds(jobs, window) == [0b100, 0b011, 0b001, 0]
    assert first_fit(jobs, window, [3, 0, 1, 0], [1.0, 1.0, 2.0, 1.0]) == [0b111, 0, 0b001, 0]
