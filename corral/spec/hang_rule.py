"""The part `hangs` of Queue and Policy documents: what becomes of jobs that make no progress any more."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from corral.spec.abbreviations import Seconds
from corral.spec.base import SpecModel, refusal


class HangRule(SpecModel):
    """How long jobs may be silent, and what is done about one that hangs."""

    at_least: Seconds = Field(
        600,
        description="No job hangs that showed progress within this time, by a reported step, its log or its devices; at "
        "least 5s. Longer pauses that a job made before are allowed for.",
    )
    at_most: Seconds = Field(
        86_400, description="A job that is silent for longer hangs, whatever pauses it made before and its ranks do."
    )
    action: Literal["warn", "restart", "suspend"] = Field(
        "warn",
        description="What is done about a job that hangs, after its owner was told: nothing more, start it anew (at most "
        "three times), or suspend it.",
    )

    @model_validator(mode="after")
    def _in_order(self) -> HangRule:
        if self.at_least < 5:
            raise refusal(f"atLeast is at least 5s, got {self.at_least}s")
        if self.at_most < self.at_least:
            raise refusal(f"atMost is at least atLeast ({self.at_least}s), got {self.at_most}s")
        return self
