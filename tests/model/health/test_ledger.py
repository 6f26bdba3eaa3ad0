"""Scores rise by signs alone and halve in time; the ledger closes few nodes, and only people or a validation open them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from corral.kernel.errors import Conflict
from corral.model.cordons import Cordon
from corral.model.health.ledger import HealthTerms, Ledger
from corral.model.health.records import HEALTH
from corral.model.health.signs import WEIGHTS, Sign, SignKind
from corral.model.health.states import TRANSITIONS, Cause, HealthState
from tests.model.health.arrows import documented_exits

HOUR = 3600.0
NODES = [f"local/node{at}" for at in range(8)]


def sign(kind: SignKind, at: float = 0.0, *, node: str = NODES[0], job: str = "", device: int = -1) -> Sign:
    return Sign(kind, node, at, "it was seen", device=device, job=job)


def ledger(**terms: float) -> Ledger:
    made = Ledger(HealthTerms(**terms))  # type: ignore[arg-type]
    made.see_nodes(NODES)
    return made


@given(st.lists(st.tuples(st.sampled_from(SignKind), st.floats(0, 1e6), st.integers(-1, 7)), max_size=20))
def test_a_score_never_rises_without_a_sign_and_halves_in_its_half_life(
    signs: list[tuple[SignKind, float, int]],
) -> None:
    made, now = ledger(), 0.0
    for number, (kind, apart, device) in enumerate(signs):
        before = made.score(NODES[0], now)
        now += apart
        assert made.score(NODES[0], now) <= before
        decayed = made.score(NODES[0], now)
        made.add(sign(kind, now, job=f"j{number}", device=device))
        assert made.score(NODES[0], now) <= decayed + WEIGHTS[kind] + 1e-9
    whole, half = made.score(NODES[0], now), made.score(NODES[0], now + made.terms.half_life_seconds)
    assert half == pytest.approx(whole / 2)
    stored = sum(score.value for score in made.of(NODES[0]).scores.values())
    assert made.score(NODES[0], now - 1e7) <= stored, "a clock that goes backwards raises nothing"


def test_a_node_is_suspected_then_closed_then_validated_and_returned() -> None:
    made = ledger()
    for hour in range(2):
        made.add(sign(SignKind.NODE_EXIT, hour * HOUR, job=f"j{hour}"))
    made.review(HOUR, {}, ())
    assert made.of(NODES[0]).state is HealthState.SUSPECTED and made.suspects == {NODES[0]}
    made.add(sign(SignKind.NODE_EXIT, HOUR, job="j3"))
    made.review(HOUR, {}, ())
    assert made.of(NODES[0]).state is HealthState.CORDONED
    closed = {NODES[0]: Cordon(NODES[0], HEALTH, "", HOUR)}
    made.review(HOUR, closed, ())
    assert made.of(NODES[0]).state is HealthState.CORDONED, "tasks are still there"
    made.review(9 * HOUR, closed, {NODES[0]})
    assert made.of(NODES[0]).state is HealthState.VALIDATING
    made.move(NODES[0], Cause.PASSED, HEALTH, "all figures are right", 10 * HOUR)
    assert (made.of(NODES[0]).state, made.score(NODES[0], 10 * HOUR)) == (HealthState.HEALTHY, 0.0)
    nodes, entries = made.take()
    assert [each.node for each in nodes] == NODES[:1]
    moves = [(each.before, each.after, each.by) for each in entries if each.what == "moved"]
    assert moves == [
        ("healthy", "suspected", HEALTH), ("suspected", "cordoned", HEALTH), ("cordoned", "validating", HEALTH),
        ("validating", "healthy", HEALTH),
    ]  # fmt: skip


def test_a_suspicion_ends_by_itself_and_a_cordon_does_not() -> None:
    made = ledger()
    made.add(sign(SignKind.XID, device=3))
    made.review(0.0, {}, ())
    assert made.of(NODES[0]).state is HealthState.SUSPECTED
    made.review(12 * HOUR, {}, ())
    assert made.of(NODES[0]).state is HealthState.HEALTHY
    made = ledger(validates=False)
    for device in (1, 2):
        made.add(sign(SignKind.ECC, device=device))
    made.review(0.0, {}, ())
    made.review(1000 * HOUR, {NODES[0]: Cordon(NODES[0], HEALTH, "", 0.0)}, NODES)
    assert made.of(NODES[0]).state is HealthState.CORDONED


def test_a_node_where_starts_of_different_jobs_fail_in_a_row_gets_no_more() -> None:
    made = ledger()
    for job in ("a", "a", "b"):
        made.add(sign(SignKind.START_FAILED, job=job))
    made.review(0.0, {}, ())
    assert made.of(NODES[0]).state is HealthState.SUSPECTED
    made.started(NODES[0])
    made.add(sign(SignKind.START_FAILED, HOUR, job="c"))
    made.review(7 * HOUR, {}, ())
    assert made.of(NODES[0]).state is HealthState.SUSPECTED, "one has worked between them"
    for job in ("d", "e"):
        made.add(sign(SignKind.START_FAILED, 7 * HOUR, job=job))
    made.review(7 * HOUR, {}, ())
    assert made.of(NODES[0]).state is HealthState.CORDONED


def test_starts_that_fail_everywhere_close_no_node() -> None:
    made = ledger()
    for number in range(50):
        made.add(sign(SignKind.START_FAILED, node=NODES[number % 8], job=f"j{number}"))
    made.review(0.0, {}, ())
    assert made.closed == []
    assert made.score(NODES[7], 0.0) == 0.0


def test_one_users_programs_alone_close_no_node() -> None:
    made = ledger()
    for minute in range(24 * 60):
        at = minute * 60.0
        made.add(replace(sign(SignKind.CLAIMED_EXIT, at, job=f"j{minute}"), source="ada"))
        made.review(at, {}, ())
    assert made.closed == []


def test_removing_the_cordon_ends_the_suspicion() -> None:
    made = ledger()
    for job in "abc":
        made.add(sign(SignKind.NODE_EXIT, job=job))
    made.review(0.0, {}, ())
    made.review(1.0, {}, ())
    assert made.of(NODES[0]).state is HealthState.CORDONED, "its cordon is not in force yet"
    made.review(2.0, {NODES[0]: Cordon(NODES[0], HEALTH, "", 0.0)}, ())
    made.review(3.0, {}, ())
    assert made.of(NODES[0]).state is HealthState.HEALTHY


def test_no_more_than_two_validations_a_day_are_asked_for() -> None:
    made, asked = ledger(), 0
    cordons = {NODES[0]: Cordon(NODES[0], HEALTH, "", 0.0)}
    for hour in range(23):
        for job in "abc":
            made.add(sign(SignKind.NODE_EXIT, hour * HOUR, job=f"{job}{hour}"))
        made.review(hour * HOUR, {}, ())
        for _ in range(2):
            made.review(hour * HOUR, cordons, NODES)
        if made.of(NODES[0]).state is HealthState.VALIDATING:
            asked += 1
            made.note_job(NODES[0], f"v{hour}")
            made.move(NODES[0], Cause.PASSED, HEALTH, "all figures are right", hour * HOUR)
    assert asked == 2 and made.of(NODES[0]).state is HealthState.CORDONED


def test_a_failed_validation_is_not_repeated_by_itself() -> None:
    made = ledger()
    for job in "abc":
        made.add(sign(SignKind.NODE_EXIT, job=job))
    cordons = {NODES[0]: Cordon(NODES[0], HEALTH, "", 0.0)}
    for known in ({}, cordons, cordons):
        made.review(0.0, known, NODES)
    made.note_job(NODES[0], "v1")
    made.add(sign(SignKind.START_FAILED, HOUR, job="v1"))
    made.review(2 * HOUR, cordons, NODES)
    health = made.of(NODES[0])
    assert (health.state, health.why) == (HealthState.CORDONED, "it was seen")


def test_an_impossible_move_is_refused() -> None:
    with pytest.raises(
        Conflict, match="is healthy; from there it can become suspected or cordoned or repairing or validating"
    ):
        ledger().move(NODES[0], Cause.PASSED, "", "", 0.0)


def test_the_states_name_their_exits_as_the_table_has_them() -> None:
    assert documented_exits() == {
        state: {to for (at, _), to in TRANSITIONS.items() if at is state} for state in HealthState
    }


class AnyLife(RuleBasedStateMachine):
    """Any signs, any time, any acts of people."""

    @initialize(most=st.integers(0, 5))
    def begin(self, most: int) -> None:
        self.ledger, self.most, self.now = ledger(most_cordoned=most), most, 0.0
        self.cordons: dict[str, Cordon] = {}
        self.opened: set[str] = set()
        self.before: dict[str, HealthState] = {}
        self.repaired: set[str] = set()

    @rule(node=st.sampled_from(NODES), kind=st.sampled_from(SignKind), job=st.integers(0, 50))
    def sign(self, node: str, kind: SignKind, job: int) -> None:
        self.ledger.add(sign(kind, self.now, node=node, job=f"j{job}"))

    @rule(seconds=st.floats(0, 1e5))
    def review(self, seconds: float) -> None:
        self.now += seconds
        self.before = {name: self.ledger.of(name).state for name in NODES}
        self.ledger.review(self.now, self.cordons, NODES)
        for name, state in self.before.items():
            if state.closed and name in self.cordons:
                assert self.ledger.of(name).state.closed, "only people and validations open a node"
        self.cordons = {each.node: Cordon(each.node, HEALTH, "", self.now) for each in self.ledger.closed}

    @rule(node=st.sampled_from(NODES), cause=st.sampled_from((Cause.PASSED, Cause.FAILED, Cause.CLEARED)))
    def person(self, node: str, cause: Cause) -> None:
        if (self.ledger.of(node).state, cause) in TRANSITIONS:
            self.ledger.move(node, cause, "ada", "", self.now)
            if not self.ledger.of(node).state.closed:
                self.cordons.pop(node, None)

    @invariant()
    def few_are_closed(self) -> None:
        if hasattr(self, "ledger"):
            assert len(self.ledger.closed) <= min(self.most, len(NODES) // 2)


TestAnyLife = AnyLife.TestCase


def test_the_page_lists_states_and_weights_as_the_tables_have_them() -> None:
    page = (Path(__file__).parents[3] / "docs/health.md").read_text()
    for state in HealthState:
        (row,) = [line for line in page.splitlines() if line.startswith(f"| {state} |")]
        assert {HealthState(each) for each in row.strip("| ").rpartition("|")[2].strip().split(", ")} == {
            to for (at, _), to in TRANSITIONS.items() if at is state
        }
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| ")]
    told = {kind: row[2].strip() for row in rows for kind in row[1].strip().split(", ")}
    assert {kind for kind in SignKind if told.get(kind) != f"{WEIGHTS[kind]:g}"} == {SignKind.HEALTH_EVENT}
