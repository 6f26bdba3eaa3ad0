"""Figures, terms and a time in, the next state and what is to be told out."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.model.idle import machine
from corral.model.idle.machine import (
    TRANSITIONS,
    Action,
    DeviceFigures,
    Finding,
    IdleState,
    IdleTerms,
    Signal,
    Spell,
    action_at,
    extended,
    idle_devices,
    step,
)
from corral.model.idle.words import action_taken, warning, would_have

HOUR = 3600.0
TERMS = IdleTerms(5.0, 2 * HOUR, Action.STOP, HOUR)
IDLE = DeviceFigures(2, (0.0, 4.9))
BUSY = DeviceFigures(2, (0.0, 5.0))


def played(
    *looks: tuple[float, DeviceFigures], terms: IdleTerms | None = TERMS, spell: Spell | None = None, **more: Any
) -> tuple[Spell, list[tuple[float, str]]]:
    """The spell after looks at times in hours, and the findings with their times."""
    spell, findings = spell or Spell(), []
    for hours, figures in looks:
        spell, finding = step(spell, figures, terms, 1e6 + hours * HOUR, **{"attempt": 0} | more)
        if finding is not None:
            findings.append((hours, str(finding)))
    return spell, findings


@pytest.mark.parametrize(
    ("figures", "any_device", "idle"),
    [
        (DeviceFigures(2, (0.0, 4.9)), False, 2),
        (DeviceFigures(2, (0.0, 5.0)), False, 0),
        (DeviceFigures(2, (0.0, 5.0)), True, 1),
        (DeviceFigures(2, (0.0,)), False, 0),
        (DeviceFigures(2, (0.0,)), True, 1),
        (DeviceFigures(2, ()), True, 0),
        (DeviceFigures(0, ()), False, 0),
        (DeviceFigures(1, (0.0,), active=True), False, 0),
        (DeviceFigures(1, (0.0, 0.0)), False, 2),
    ],
    ids=[
        "all below", "one at the bound", "any of them below", "no signal of one counts as busy",
        "any below beside no signal", "no signal", "no device", "somebody works in it", "a process uses another's device",
    ],
)  # fmt: skip
def test_no_signal_and_activity_count_as_busy(figures: DeviceFigures, any_device: bool, idle: int) -> None:
    assert idle_devices(figures, TERMS._replace(any_device=any_device)) == idle


LOOKS = ((0, IDLE), (1.9, IDLE), (2, IDLE), (2.9, IDLE), (3, IDLE), (9, IDLE))


@pytest.mark.parametrize(
    ("looks", "terms", "more", "state", "findings"),
    [
        (LOOKS[:2], TERMS, {}, "idle", []),
        (LOOKS[:4], TERMS, {}, "warned", [(2, "warn")]),
        (LOOKS, TERMS, {}, "acted", [(2, "warn"), (3, "act")]),
        (LOOKS, TERMS._replace(action=Action.WARN), {}, "warned", [(2, "warn")]),
        (LOOKS, TERMS, {"can_act": False}, "warned", [(2, "warn")]),
        ((*LOOKS[:2], (1.95, BUSY), (2, IDLE), (3.9, IDLE)), TERMS, {}, "idle", []),
        ((*LOOKS[:3], (2.5, BUSY)), TERMS, {}, "busy", [(2, "warn"), (2.5, "over")]),
        ((*LOOKS[:3], (2.5, DeviceFigures(2))), TERMS, {}, "busy", [(2, "warn"), (2.5, "over")]),
        ((*LOOKS, (9.5, BUSY), (10, IDLE), (12, IDLE)), TERMS, {}, "warned", [(2, "warn"), (3, "act"), (12, "warn")]),
        (LOOKS, None, {}, "busy", []),
        (LOOKS, TERMS._replace(below=0.0), {}, "busy", []),
    ],
    ids=[
        "short", "warned", "acted on once", "warn alone", "an action that is impossible", "busy in between",
        "busy after the warning", "the signal ends", "idle again", "no terms", "below nothing",
    ],
)  # fmt: skip
def test_a_job_is_warned_then_acted_on(
    looks: Any, terms: IdleTerms | None, more: Any, state: str, findings: list[tuple[float, str]]
) -> None:
    spell, found = played(*looks, terms=terms, **more)
    assert (spell.state, found) == (state, findings)


def test_the_owner_extends_once_and_is_warned_again() -> None:
    warned, _ = played(*LOOKS[:3])
    longer = extended(warned, TERMS.seconds, "the data is late", 1e6 + 2.5 * HOUR)
    assert longer is not None and longer.state == IdleState.EXTENDED and longer.reason == "the data is late"
    again, found = played((3, IDLE), (4.4, IDLE), (4.5, IDLE), (5.4, IDLE), (5.5, IDLE), spell=longer)
    assert found == [(4.5, "warn"), (5.5, "act")]
    assert extended(again, 1.0, "more", 0.0) is None and extended(Spell(), 1.0, "no warning", 0.0) is None
    warned_again, _ = played((3, IDLE), (4.5, IDLE), spell=longer)
    assert extended(warned_again, TERMS.seconds, "once more", 1e6 + 5 * HOUR) is None
    busy, found = played((3, BUSY), spell=longer)
    assert found == [(3, "over")] and busy.extended_at, "it stays said that more time was given"


def test_a_new_attempt_begins_anew_and_waste_is_summed() -> None:
    spell, _ = played(*LOOKS[:3])
    assert spell.wasted(1e6 + 2 * HOUR) == 4 * HOUR
    spell, found = played((3, IDLE), spell=spell, attempt=1)
    assert (spell.state, spell.since, found) == ("idle", 1e6 + 3 * HOUR, [])
    assert spell.wasted_before == 2 * 3 * HOUR and spell.wasted(1e6 + 4 * HOUR) == 8 * HOUR
    short, _ = played((0, IDLE), (1, BUSY))
    assert short.wasted(1e9) == 0.0, "nobody was warned of it"


def test_the_time_of_the_action_is_known_before() -> None:
    idle, _ = played(*LOOKS[:2])
    warned, _ = played(*LOOKS[:3])
    assert action_at(idle, TERMS) == action_at(warned, TERMS) == 1e6 + 3 * HOUR
    assert action_at(warned, TERMS._replace(action=Action.WARN)) is None
    assert action_at(warned, TERMS, can_act=False) is None and action_at(Spell(), TERMS) is None


def test_a_spell_says_what_is_done_and_when() -> None:
    idle, _ = played(*LOOKS[:2])
    spell, _ = played(*LOOKS[:4])
    for each in (idle, spell):
        assert (each.action, each.acts_at) == ("stop", 1e6 + 3 * HOUR)
    longer = extended(spell, TERMS.seconds, "late", 1e6 + 2.5 * HOUR)
    assert longer is not None and (longer.action, longer.acts_at) == ("stop", 1e6 + 5.5 * HOUR)
    seen, _ = played((3, IDLE), spell=longer)
    assert (seen.action, seen.acts_at) == ("stop", longer.acts_at)
    acted, _ = played(*LOOKS[:5])
    later, _ = played((9, IDLE), spell=acted, terms=TERMS._replace(action=Action.WARN), can_act=False)
    assert (acted.action, acted.acts_at) == (later.action, later.acts_at) == ("stop", 0.0), "what was done stays said"
    warned, _ = played(*LOOKS[:3], can_act=False)
    assert (warned.action, warned.acts_at) == ("warn", 0.0)
    assert (busy := played(*LOOKS[:3], (2.5, BUSY))[0]).action == "" and not busy.acts_at


def test_the_states_name_their_exits() -> None:
    (made,) = [each for each in ast.parse(inspect.getsource(machine)).body if getattr(each, "name", "") == "IdleState"]
    assert isinstance(made, ast.ClassDef)
    said: dict[IdleState, set[IdleState]] = {}
    state = IdleState.BUSY
    for each in made.body[1:]:
        if isinstance(each, ast.Assign):
            state = IdleState[ast.unparse(each.targets[0])]
        elif isinstance(each, ast.Expr):
            text = str(ast.literal_eval(each.value)).partition("->")[2]
            said[state] = {IdleState[name.strip()] for name in text.split("|")}
    table = {
        state: {after for (before, _), after in TRANSITIONS.items() if before is state and after is not state}
        for state in IdleState
    }
    assert said == table


LOOK = st.tuples(st.floats(0, 3), st.lists(st.floats(0, 10), max_size=3), st.booleans())


@given(st.lists(LOOK, max_size=30), st.sampled_from(Action), st.booleans(), st.booleans())
def test_nobody_loses_devices_without_a_warning_a_grace_before(
    looks: list[tuple[float, list[float], bool]], action: Action, any_device: bool, extend: bool
) -> None:
    terms, spell, now, warned = IdleTerms(5.0, 2 * HOUR, action, HOUR, any_device), Spell(), 1e6, None
    for hours, use, active in looks:
        now += hours * HOUR
        before = spell
        spell, finding = step(spell, DeviceFigures(len(use), use, active), terms, now, attempt=0)
        if not use or active:
            assert spell.state == IdleState.BUSY
        if finding is Finding.WARN:
            assert now - spell.since >= terms.seconds
            warned = now
            if extend and (longer := extended(spell, terms.seconds, "why", now)):
                spell = longer
        if finding is Finding.ACT:
            assert warned is not None and now - warned >= terms.grace_seconds and action is not Action.WARN
            assert before.state == IdleState.WARNED
        assert spell.wasted(now) >= 0


def test_every_state_answers_each_look() -> None:
    for state in IdleState:
        assert {(state, Signal.BUSY), (state, Signal.IDLE)} - TRANSITIONS.keys() <= {(IdleState.BUSY, Signal.DUE)}


def test_the_words_name_waste_time_and_the_way_out() -> None:
    spell, _ = played(*LOOKS[:3])
    now = 1e6 + 2 * HOUR
    said = warning("train", spell, TERMS, now, can_act=True)
    assert said == (
        "2 of its 2 devices were used less than 5 % for 2h; 4.0 device-hours are wasted. The job is stopped in 1h unless "
        "it uses them. `corral idle extend train --reason …` gives it 2h more, once."
    )
    assert warning("train", spell, TERMS, now, can_act=False).endswith("wasted.")
    assert action_taken(spell, TERMS, now).startswith("2 of its 2 devices were used less than 5 % for 2h, and after a")
    assert would_have("t", "ann", "why", Action.STOP, warns=False) == "Dry run: job ann~t would have been stopped: why"
