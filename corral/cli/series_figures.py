"""How series and their values are written in the terminal."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from corral.client.schema import SeriesView

WIDTH: Final = 48
"""Characters of a line over time."""
NAMES_OF_A_JOB: Final = frozenset({"job", "job_instance_id", "job_name", "username", "virtual_cluster"})
"""Labels that all series of a job share."""
_TAG: Final = "tag"
"""The label that is the name of a curve of a job's own."""
_OF_JOB: Final = "corral_job_"


def short_name(series: SeriesView, told: Collection[str]) -> str:
    """Return a series' name with those of its labels that are `told` and not empty; a curve's tag is always told."""
    labels = {name: value for name, value in series["labels"].items() if value and (name in told or name == _TAG)}
    said = ",".join(f"{name}={value}" for name, value in labels.items())
    return series["family"].removeprefix(_OF_JOB) + (f"{{{said}}}" if said else "")


def short_number(value: float) -> str:
    """Return a value with four digits at least."""
    return f"{value:.4g}" if abs(value) < 1e4 or abs(value) >= 1e15 else f"{value:.0f}"
