"""The part `idle` of Queue and Policy documents: what becomes of jobs that leave their devices idle."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from corral.spec.abbreviations import Seconds
from corral.spec.base import SpecModel, refusal


class IdleRule(SpecModel):
    """When the devices of a job count as idle, and what is done about it."""

    below: float = Field(
        5.0,
        ge=0,
        le=100,
        allow_inf_nan=False,
        description="A device is idle while its use is below this, in percent; 0 is never. No signal counts as busy.",
    )
    for_seconds: Seconds = Field(
        7200, alias="for", description="How long they are idle before the job's owner is warned; at least 1m."
    )
    action: Literal["warn", "stop", "shrink", "suspend"] = Field(
        "warn",
        description="What is done when the devices are still idle after the grace: nothing more, stop the job, take an "
        "elastic job down to its minimum, or suspend the job. Jobs that cannot shrink are warned only.",
    )
    grace: Seconds = Field(3600, description="The time between the warning and the action.")
    devices: Literal["any", "all"] = Field(
        "all", description="Whether all devices of a job must be idle, or any one of them."
    )
    dry_run: bool = Field(False, description="Whether only what would have happened is reported, to administrators.")

    @model_validator(mode="after")
    def _long_enough(self) -> IdleRule:
        if self.for_seconds < 60:
            raise refusal(f"for is at least 1m, got {self.for_seconds}s")
        return self
