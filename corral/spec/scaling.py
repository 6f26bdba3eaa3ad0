"""How fast an elastic job works by its size, as its author has measured it."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from corral.kernel.units import counted
from corral.spec.base import SpecModel, refusal


class MeasuredSize(SpecModel):
    """The speed of a job at one size."""

    devices: int = Field(ge=1, le=100_000, description="The devices of all its tasks together.")
    nodes: int = Field(1, ge=1, le=100_000, description="The nodes that they are on.")
    throughput: float = Field(
        ge=1e-15, le=10**15, allow_inf_nan=False, description="Its work per second at that size, in any unit."
    )


def _distinct(sizes: list[MeasuredSize]) -> list[MeasuredSize]:
    seen = set()
    for each in sizes:
        if each.nodes > each.devices:
            raise refusal(f"{counted(each.devices, 'device')} cannot be on {counted(each.nodes, 'node')}")
        if (each.devices, each.nodes) in seen:
            size = f"{counted(each.devices, 'device')} on {counted(each.nodes, 'node')}"
            raise refusal(f"the size of {size} is there twice")
        seen.add((each.devices, each.nodes))
    return sizes


Scaling = Annotated[list[MeasuredSize], Field(max_length=64), AfterValidator(_distinct)]
