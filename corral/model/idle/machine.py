"""What becomes of a job that leaves its devices idle: one table of transitions, without clock or I/O.

Figures, terms and a time go in; the next state comes out, with a finding where somebody is to be told or something is to
be done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec


class IdleState(StrEnum):
    """The state of one job."""

    BUSY = "busy"
    """Its devices are in use, or nothing is known of them.

    -> IDLE
    """
    IDLE = "idle"
    """They are idle, not yet for so long that anybody is told.

    -> BUSY | WARNED
    """
    WARNED = "warned"
    """Its owner was warned; the action comes after the grace.

    -> BUSY | EXTENDED | ACTED
    """
    EXTENDED = "extended"
    """Its owner gave a reason, so nothing is done for a while.

    -> BUSY | WARNED
    """
    ACTED = "acted"
    """The action was asked for; it is not repeated while they stay idle.

    -> BUSY
    """


class Signal(StrEnum):
    """What a look at a job says."""

    BUSY = "busy"
    IDLE = "idle"
    """The devices are idle, and the time of the state is not over."""
    DUE = "due"
    """The devices are idle, and the time of the state is over."""
    EXTEND = "extend"
    """The owner asks for more time."""


class Finding(StrEnum):
    """What is to be told, or done."""

    WARN = "warn"
    ACT = "act"
    OVER = "over"
    """The devices of a job that was warned are in use again."""


class Action(StrEnum):
    """What is done about a job after the grace."""

    WARN = "warn"
    STOP = "stop"
    SHRINK = "shrink"
    SUSPEND = "suspend"


class IdleTerms(NamedTuple):
    """The terms of a queue or a policy. Times are in seconds."""

    below: float
    """Percent."""
    seconds: float
    action: Action
    grace_seconds: float
    any_device: bool = False
    dry_run: bool = False
    unattended: bool = False
    """Whether the job is idle when nobody works in it, with devices or without, and not when its devices are."""


class DeviceFigures(NamedTuple):
    """What is known of a job's devices at one time."""

    held: int
    """Devices that it holds; parts of a device count as one."""
    use: Sequence[float] = ()
    """The use of those that told it, in percent."""
    active: bool = False
    """Whether a task says that somebody works in it, such as in the kernels of a notebook."""
    unattended: bool = False
    """Whether its tasks say that nobody works in them."""


class Spell(msgspec.Struct, frozen=True, omit_defaults=True):
    """How long a job has left devices idle, and what was done about it. Times are seconds since 1970, 0 is never."""

    state: str = IdleState.BUSY
    attempt: int = 0
    """The job's attempt that it is about."""
    since: float = 0.0
    """When the devices became idle."""
    idle: int = 0
    """Devices that are idle."""
    held: int = 0
    warned_at: float = 0.0
    acted_at: float = 0.0
    extended_at: float = 0.0
    """When its owner asked for more time; once a job."""
    extended_until: float = 0.0
    reason: str = ""
    wasted_before: float = 0.0
    """Device-seconds of earlier spells that were warned of."""
    dry_run: bool = False
    action: str = ""
    """What the terms say is done, or what was done; `warn` is nothing more. "" while the devices are busy."""
    acts_at: float = 0.0
    """When it is done if the devices stay idle; 0: nothing is to come."""

    def wasted(self, now: float) -> float:
        """Device-seconds that were left idle: the devices that are idle, for as long as the spell lasts."""
        current = self.idle * max(0.0, now - self.since) if self.state != IdleState.BUSY else 0.0
        return self.wasted_before + current


TRANSITIONS: Final[Mapping[tuple[IdleState, Signal], IdleState]] = {
    (IdleState.BUSY, Signal.BUSY): IdleState.BUSY,
    (IdleState.BUSY, Signal.IDLE): IdleState.IDLE,
    (IdleState.IDLE, Signal.BUSY): IdleState.BUSY,
    (IdleState.IDLE, Signal.IDLE): IdleState.IDLE,
    (IdleState.IDLE, Signal.DUE): IdleState.WARNED,
    (IdleState.WARNED, Signal.BUSY): IdleState.BUSY,
    (IdleState.WARNED, Signal.IDLE): IdleState.WARNED,
    (IdleState.WARNED, Signal.DUE): IdleState.ACTED,
    (IdleState.WARNED, Signal.EXTEND): IdleState.EXTENDED,
    (IdleState.EXTENDED, Signal.BUSY): IdleState.BUSY,
    (IdleState.EXTENDED, Signal.IDLE): IdleState.EXTENDED,
    (IdleState.EXTENDED, Signal.DUE): IdleState.WARNED,
    (IdleState.ACTED, Signal.BUSY): IdleState.BUSY,
    (IdleState.ACTED, Signal.IDLE): IdleState.ACTED,
}
"""Every transition; what is not here cannot be."""
_TOLD: Final = frozenset({IdleState.WARNED, IdleState.EXTENDED, IdleState.ACTED})


def step(
    spell: Spell, figures: DeviceFigures, terms: IdleTerms | None, now: float, *, attempt: int, can_act: bool = True
) -> tuple[Spell, Finding | None]:
    """Look at a job once. Without terms it is busy; with a new attempt a spell begins anew.

    `can_act` is whether the action of the terms is possible for the job; else it is warned only.
    """
    if spell.attempt != attempt:
        spell = _ended(spell, now, attempt)
    before = IdleState(spell.state)
    signal = _signal(spell, figures, terms, now, can_act)
    after = TRANSITIONS[before, signal]
    if after is IdleState.BUSY or terms is None:
        ended = _ended(spell, now, attempt)
        return ended, Finding.OVER if before in _TOLD and not spell.acted_at else None
    spell = msgspec.structs.replace(
        spell,
        state=str(after),
        since=now if before is IdleState.BUSY else spell.since,
        idle=idle_devices(figures, terms),
        held=figures.held,
        dry_run=terms.dry_run,
    )
    if before is IdleState.ACTED:
        return spell, None
    if after is before or after is IdleState.IDLE:
        return _with_action(spell, terms, can_act), None
    if after is IdleState.WARNED:
        return _with_action(msgspec.structs.replace(spell, warned_at=now), terms, can_act), Finding.WARN
    return _with_action(msgspec.structs.replace(spell, acted_at=now), terms, can_act), Finding.ACT


def extended(spell: Spell, seconds: float, reason: str, now: float) -> Spell | None:
    """The spell of a job whose owner asks for more time; None if it is not warned, or was extended before."""
    after = TRANSITIONS.get((IdleState(spell.state), Signal.EXTEND))
    if after is None or spell.extended_at:
        return None
    until = now + seconds
    acts_at = until + spell.acts_at - spell.warned_at if spell.acts_at else 0.0
    return msgspec.structs.replace(
        spell, state=str(after), extended_at=now, extended_until=until, reason=reason, acts_at=acts_at
    )


def is_idle(figures: DeviceFigures, terms: IdleTerms) -> bool:
    """Whether the job counts as idle under these terms. One that nobody works in is busy while a device of it is."""
    if terms.unattended:
        return figures.unattended and all(use < terms.below for use in figures.use)
    return idle_devices(figures, terms) > 0


def idle_devices(figures: DeviceFigures, terms: IdleTerms) -> int:
    """The devices that are idle under these terms; 0 if the job counts as busy."""
    if terms.unattended:
        return figures.held if is_idle(figures, terms) else 0
    if figures.active or not figures.use:
        return 0
    idle = sum(use < terms.below for use in figures.use)
    if terms.any_device:
        return idle
    return idle if idle == len(figures.use) >= figures.held else 0


def action_at(spell: Spell, terms: IdleTerms, *, can_act: bool = True) -> float | None:
    """When the action comes if the devices stay idle; None if none comes."""
    if terms.action is Action.WARN or not can_act:
        return None
    match spell.state:
        case IdleState.IDLE:
            return spell.since + terms.seconds + terms.grace_seconds
        case IdleState.WARNED:
            return spell.warned_at + terms.grace_seconds
        case IdleState.EXTENDED:
            return spell.extended_until + terms.grace_seconds
    return None


def _signal(spell: Spell, figures: DeviceFigures, terms: IdleTerms | None, now: float, can_act: bool) -> Signal:
    if terms is None or not is_idle(figures, terms):
        return Signal.BUSY
    match spell.state:
        case IdleState.IDLE:
            due: float | None = spell.since + terms.seconds
        case IdleState.WARNED:
            due = action_at(spell, terms, can_act=can_act)
        case IdleState.EXTENDED:
            due = spell.extended_until
        case _:
            due = None
    return Signal.DUE if due is not None and now >= due else Signal.IDLE


def _with_action(spell: Spell, terms: IdleTerms, can_act: bool) -> Spell:
    action = terms.action if can_act else Action.WARN
    acts_at = action_at(spell, terms, can_act=can_act) or 0.0
    return msgspec.structs.replace(spell, action=str(action), acts_at=acts_at)


def _ended(spell: Spell, now: float, attempt: int) -> Spell:
    """The spell is over; what it wasted counts if its owner was warned."""
    wasted = spell.wasted(now) if spell.state in _TOLD else spell.wasted_before
    return Spell(
        attempt=attempt,
        warned_at=spell.warned_at,
        acted_at=0.0,
        extended_at=spell.extended_at,
        reason=spell.reason,
        wasted_before=wasted,
        dry_run=spell.dry_run,
    )
