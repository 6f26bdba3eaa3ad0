"""Which jobs a used-up budget holds, which it frees again, and whose owners are warned."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from corral.kernel.ids import JobId
from corral.model.budget_holds import FREED, CountedJob, Verdict, is_used_up, mark_of, marks, rulings, words_of
from corral.model.budgets import HOUR, Budget, Standing, TopUp

WEEK = 7 * 24 * HOUR
QUEUES, USERS = ("lab", "ops"), ("ann", "bob")


def standing(
    name: str = "lab",
    *,
    kind: str = "queue",
    used: float = 10.0,
    hours: float = 10.0,
    then: str = "hold",
    begin: float = 0,
) -> Standing:
    """A budget of `hours` of which `used` hours are used."""
    budget = Budget(kind, name, "week", hours, 0.8, 0.0, "root", then)
    queues = (name,) if kind == "queue" else ()
    return Standing(budget, begin, begin + WEEK, queues, used * HOUR, 0.0)


def job(number: int = 0, *, queue: str = "lab", devices: float = 1.0, held: str = "", can: bool = True) -> CountedJob:
    return CountedJob(JobId(f"job{number}"), queue, "ann", devices, held, can_be_held=can)


def test_a_job_is_held_while_its_budget_is_used_up_and_goes_on_after_a_top_up_or_in_the_next_window() -> None:
    used_up = standing()
    (held,) = rulings([used_up], [job()], {})
    assert (held.verdict, held.why) == (Verdict.HOLD, words_of(used_up))
    assert (
        held.why
        == "the budget of queue lab for this week is used up (10.0 device-hours until 1970-01-08T00:00:00.000Z)"
    )
    away = job(held=held.why)
    assert rulings([used_up], [away], {}) == []
    more = msgspec.structs.replace(used_up, top_ups=(TopUp(1.0, 0.0, "root", "paper"),))
    for allows in ([more], [standing(used=0.0, begin=WEEK)], [standing(then="warn")], []):
        freed = [each for each in rulings(allows, [away], marks(allows)) if each.verdict is not Verdict.WARN]
        assert [(each.verdict, each.why) for each in freed] == [(Verdict.FREE, FREED)]


def test_a_top_up_that_does_not_suffice_changes_what_is_said() -> None:
    away = job(held=words_of(standing()))
    more = msgspec.structs.replace(standing(used=12.0), top_ups=(TopUp(1.0, 0.0, "root", "paper"),))
    (again,) = rulings([more], [away], {})
    assert again.verdict is Verdict.HOLD and "(11.0 device-hours" in again.why


def test_what_is_only_promised_holds_nothing() -> None:
    promised = msgspec.structs.replace(standing(used=9.9), promised=100 * HOUR)
    assert rulings([promised], [job()], {}) == []


def test_a_job_that_cannot_be_held_runs_on_and_its_owner_is_warned_once_for_each_window() -> None:
    for stands, counted in ((standing(then="warn"), job()), (standing(), job(can=False))):
        (warned,) = rulings([stands], [counted], {})
        assert warned.verdict is Verdict.WARN
        assert rulings([stands], [counted], marks([stands])) == []
        later = standing(then=stands.budget.when_used_up, begin=WEEK)
        assert [each.verdict for each in rulings([later], [counted], marks([stands]))] == [Verdict.WARN]


standings = st.lists(
    st.builds(
        lambda kind, at, used, hours, then: standing(
            (QUEUES if kind == "queue" else USERS)[at], kind=kind, used=used, hours=hours, then=then
        ),
        st.sampled_from(["queue", "user"]),
        st.integers(0, 1),
        st.floats(0.0, 20.0),
        st.floats(0.1, 20.0),
        st.sampled_from(["warn", "hold"]),
    ),
    max_size=5,
    unique_by=lambda each: mark_of(each)[0],
)
jobs = st.lists(
    st.builds(
        lambda number, queue, user, devices, held, can: CountedJob(
            JobId(f"job{number}"), queue, user, devices, held, can
        ),
        st.integers(0, 1000),
        st.sampled_from(QUEUES),
        st.sampled_from(USERS),
        st.sampled_from([0.0, 0.5, 8.0]),
        st.sampled_from(["", "the budget of queue lab for this week is used up"]),
        st.booleans(),
    ),
    max_size=12,
    unique_by=lambda each: each.id,
)


@given(standings, jobs)
def test_after_the_rulings_just_those_are_held_that_count_for_a_used_up_budget_that_holds(
    stands: list[Standing], live: list[CountedJob]
) -> None:
    after = _carried_out(stands, live)
    for each in after:
        over = [
            one
            for one in stands
            if is_used_up(one) and one.budget.when_used_up == "hold" and one.counts(each.queue, each.user)
        ]
        assert bool(each.over_budget) == bool(over and each.devices > 0 and each.can_be_held)
        assert not each.over_budget or each.over_budget in [words_of(one) for one in over]


@given(standings, jobs)
def test_nothing_follows_once_the_rulings_are_carried_out(stands: list[Standing], live: list[CountedJob]) -> None:
    assert rulings(stands, _carried_out(stands, live), marks(stands)) == []


@given(standings, jobs)
def test_no_job_is_held_and_freed_or_told_twice_of_one_budget(stands: list[Standing], live: list[CountedJob]) -> None:
    found = rulings(stands, live, {})
    moved = [each.job for each in found if each.verdict is not Verdict.WARN]
    assert len(moved) == len(set(moved)) and len(found) == len(set(found))


@given(standings, jobs, st.floats(0.0, 100.0))
def test_whatever_is_added_to_budgets_holds_no_further_job(
    stands: list[Standing], live: list[CountedJob], hours: float
) -> None:
    more = [msgspec.structs.replace(each, top_ups=(TopUp(hours, 0.0, "root", "why"),)) for each in stands]
    before = {each.id for each in _carried_out(stands, live) if each.over_budget}
    assert {each.id for each in _carried_out(more, live) if each.over_budget} <= before


def _carried_out(stands: list[Standing], live: list[CountedJob]) -> list[CountedJob]:
    found = {each.job: each for each in rulings(stands, live, marks(stands)) if each.verdict is not Verdict.WARN}
    return [
        each if (one := found.get(each.id)) is None
        else each._replace(over_budget=one.why if one.verdict is Verdict.HOLD else "")
        for each in live
    ]  # fmt: skip
