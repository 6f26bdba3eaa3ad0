"""Fields that an older CRD lacks are left out in every place, and only for a while."""

from __future__ import annotations

from corral.engines.kubernetes.objects.undeclared_fields import Undeclared

SAID = (
    "failed to create typed patch object (a/b; c/v1, Kind=D): errors: .status.retries: field not declared in schema "
    '.status.conditions[type="Accepted"].observedGeneration: field not declared in schema'
)


def test_the_named_fields_are_left_out_and_come_again() -> None:
    now = [0.0]
    undeclared = Undeclared(seconds=60, now=lambda: now[0])
    fields = {"status": {"retries": 1, "phase": "x", "conditions": [{"type": "Accepted", "observedGeneration": 1}]}}
    assert undeclared.without("d", fields) == fields
    assert undeclared.learn("d", SAID)
    assert undeclared.without("d", fields) == {"status": {"phase": "x", "conditions": [{"type": "Accepted"}]}}
    assert undeclared.without("other", fields) == fields
    assert not undeclared.learn("d", SAID)
    now[0] = 61.0
    assert undeclared.without("d", fields) == fields
    assert undeclared.learn("d", SAID)


def test_a_refusal_that_names_nothing_teaches_nothing() -> None:
    assert not Undeclared(seconds=60).learn("d", "Internal error occurred: field not declared in schema")
