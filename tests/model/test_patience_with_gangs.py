"""How long a gang may be silent: learnt from its own pauses, within bounds that people set."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from corral.model.hangs.patience import HangTerms, Life, learnt, patience

SECONDS = st.floats(0, 1e6)
ROUNDING = 1e-9
"""More than sums of these times differ by in floating point."""
TERMS = st.tuples(SECONDS, SECONDS).map(lambda both: HangTerms(min(both), max(both)))


@given(TERMS, SECONDS)
def test_patience_keeps_within_its_bounds(terms: HangTerms, seconds: float) -> None:
    assert terms.at_least <= patience(terms, seconds) <= terms.at_most


@given(TERMS, st.floats(1, 1e6))
def test_a_job_s_own_bound_is_the_most_that_is_waited(terms: HangTerms, own: float) -> None:
    bounded = terms.within(own)
    assert patience(bounded, 1e9) == own and bounded.at_least <= own and bounded.asked


@given(st.lists(st.floats(0.1, 1000), min_size=2, max_size=50), TERMS)
def test_a_pause_like_those_before_is_never_too_long(pauses: list[float], terms: HangTerms) -> None:
    life = Life(0, 0.0, 0.0)
    for at in accumulate(pauses):
        life.alive(at)
    as_long = max(pauses[1:])
    if as_long + ROUNDING < terms.at_most:
        assert not life.due(terms, life.at + as_long)
    assert life.due(terms, life.at + terms.at_most + 1)
    assert learnt(0.0, life.longest) >= 4.99 * as_long


def test_a_silent_gang_is_looked_at_again_after_as_long_and_once_more_at_its_bound() -> None:
    terms, life = HangTerms(10.0, 25.0), Life(0, 0.0, 0.0)
    looked = []
    for now in range(40):
        if life.due(terms, float(now)):
            life.looked_at = float(now)
            looked.append(now)
    assert looked == [11, 22, 26, 37]
    life.told = True
    assert not life.due(terms, 100.0)
    life.alive(101.0)
    assert not life.due(terms, 102.0) and life.due(terms, 202.0)


def test_a_silence_that_was_told_in_doubt_is_looked_into_further_until_the_next_sign() -> None:
    terms, life = HangTerms(10.0, 25.0), Life(0, 0.0, 0.0, told=True, doubtful=True, looked_at=26.0)
    assert [now for now in range(27, 48) if life.due(terms, float(now))] == list(range(37, 48))
    life.alive(50.0)
    assert not life.told and not life.doubtful


def test_a_sign_from_before_changes_nothing() -> None:
    life = Life(0, 10.0, 10.0)
    life.alive(9.0)
    assert (life.at, life.signs) == (10.0, 0)
