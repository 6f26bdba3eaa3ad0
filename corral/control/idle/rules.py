"""The terms for idle devices by queue, from the documents in force."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from corral.model.configuration import Configuration, rule_of
from corral.model.idle.machine import Action, IdleTerms
from corral.spec.idle_rule import IdleRule

"""Queues above a queue that are looked through; documents cannot have a circle."""


def _terms(rule: IdleRule) -> IdleTerms:
    return IdleTerms(
        rule.below, float(rule.for_seconds), Action(rule.action), float(rule.grace), rule.devices == "any", rule.dry_run
    )


_LONGEST_GRACE: Final = 300.0
"""Most seconds between the warning and the suspension of a job that nobody works in."""


def terms_for(idle_seconds: int, of_queue: IdleTerms | None) -> IdleTerms | None:
    """The terms of a job: those of its own `idle`, unless its queue acts sooner."""
    if not idle_seconds:
        return of_queue
    total = float(max(60, idle_seconds))
    acts = of_queue is not None and of_queue.action is not Action.WARN and not of_queue.dry_run
    if acts and of_queue is not None and of_queue.seconds + of_queue.grace_seconds <= total:
        return of_queue
    grace = min(_LONGEST_GRACE, total / 6)
    return IdleTerms(IdleRule().below, total - grace, Action.SUSPEND, grace, unattended=True)


def rules_of(configuration: Configuration) -> Mapping[str, IdleTerms]:
    """The terms of each queue that has any: its own, those of the nearest queue above it, or the policy's."""
    found = {}
    for name in configuration.queues:
        rule = rule_of(configuration, name, lambda each: each.idle)
        if rule is not None and rule.below > 0:
            found[name] = _terms(rule)
    return found
