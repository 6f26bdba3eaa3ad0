"""The field `preflight` of a job: what is checked before its command begins."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from corral.spec.base import SpecModel, refusal

PORT: Final = "corral-preflight"
"""The name of the port on which a task is measured, which it has beside its own."""


def _once(checks: list[str]) -> list[str]:
    if len(set(checks)) < len(checks):
        raise refusal("each check is named once")
    return checks


class Preflight(SpecModel):
    """What each task checks before its command begins."""

    checks: Annotated[list[Literal["network", "platform"]], AfterValidator(_once)] = Field(
        default_factory=list,
        max_length=8,
        description="network measures latency and bandwidth between all tasks; platform reads what each machine is like.",
    )
    timeout_seconds: int = Field(
        30, ge=1, le=600, description="How long the checks may delay the command, with the wait for the other tasks."
    )
    required: bool = Field(
        False, description="Whether a task fails when a check cannot be completed; otherwise its command starts."
    )
