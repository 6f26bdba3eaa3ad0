"""The terms for idle devices by queue, from the documents in force."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from corral.model.configuration import Configuration
from corral.model.idle.machine import Action, IdleTerms
from corral.spec.idle_rule import IdleRule

_DEEPEST: Final = 100
"""Queues above a queue that are looked through; documents cannot have a circle."""


def _terms(rule: IdleRule) -> IdleTerms:
    return IdleTerms(
        rule.below, float(rule.for_seconds), Action(rule.action), float(rule.grace), rule.devices == "any", rule.dry_run
    )


def rules_of(configuration: Configuration) -> Mapping[str, IdleTerms]:
    """The terms of each queue that has any: its own, those of the nearest queue above it, or the policy's."""
    found = {}
    for name in configuration.queues:
        rule = rule_of(configuration, name)
        if rule is not None and rule.below > 0:
            found[name] = _terms(rule)
    return found


def rule_of(configuration: Configuration, name: str) -> IdleRule | None:
    """The rule that holds for a queue."""
    at = name
    for _ in range(_DEEPEST):
        queue = configuration.queues.get(at)
        if queue is None:
            break
        if queue.idle is not None:
            return queue.idle
        at = queue.parent
    return configuration.policy.idle if configuration.policy is not None else None
