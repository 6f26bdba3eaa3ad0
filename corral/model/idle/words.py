"""What the owner of a job with idle devices, and administrators, are told."""

from __future__ import annotations

from typing import Final

from corral.kernel.units import format_duration
from corral.model.idle.machine import Action, IdleTerms, Spell

_DONE: Final = {Action.STOP: "stopped", Action.SHRINK: "shrunk to its minimum", Action.SUSPEND: "suspended"}


def warning(name: str, spell: Spell, terms: IdleTerms, now: float, *, can_act: bool) -> str:
    """Warn the owner: which devices, what is wasted, what comes when, and how to prevent it."""
    said = _idle(spell, terms, now)
    told = f"{said[0].upper()}{said[1:]}" + (f"; {_hours(spell, now)} device-hours are wasted." if spell.held else ".")
    if terms.action is Action.WARN or not can_act:
        return told
    grace = format_duration(int(terms.grace_seconds))
    unless = "it reports work" if terms.unattended else "it uses them"
    coming = f"The job is {_DONE[terms.action]} in {grace} unless {unless}."
    if spell.extended_at:
        return f"{told} {coming}"
    more = format_duration(int(terms.seconds))
    return f"{told} {coming} `corral idle extend {name} --reason …` gives it {more} more, once."


def action_taken(spell: Spell, terms: IdleTerms, now: float) -> str:
    """Why a job loses its devices, as its receipt says it, without a full stop."""
    hours = f" ({_hours(spell, now)} device-hours)" if spell.held else ""
    return f"{_idle(spell, terms, now)}, and after a warning{hours}"


def would_have(name: str, user: str, said: str, action: Action, *, warns: bool) -> str:
    """What a dry run reports to administrators."""
    done = "warned" if warns else _DONE.get(action, "warned")
    return f"Dry run: job {user}~{name} would have been {done}: {said}"


def over(spell: Spell, now: float) -> str:
    """Tell that the devices are in use again."""
    if not spell.wasted(now):  # it has no devices, so what ended is that nobody worked in it
        return "It reports work again."
    return f"Its devices are in use again; {_hours(spell, now)} device-hours were wasted."


def _idle(spell: Spell, terms: IdleTerms, now: float) -> str:
    lasted = max(60, int(now - spell.since) // 60 * 60)
    if terms.unattended:
        return f"it reported no work for {format_duration(lasted)}"
    which = f"{spell.idle} of its {spell.held} devices" if spell.held > 1 else "its device"
    verb = "were" if spell.held > 1 else "was"
    return f"{which} {verb} used less than {terms.below:g} % for {format_duration(lasted)}"


def _hours(spell: Spell, now: float) -> str:
    return f"{spell.wasted(now) / 3600:.1f}"
