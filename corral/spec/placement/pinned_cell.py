"""The rule `pinnedCell`: a cell of the queue that has to hold the whole job, or the tasks of one role."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pydantic import Field

from corral.kernel.units import counted
from corral.spec.errors import Path
from corral.spec.placement.rule import Series, Unmet, Weaker

if TYPE_CHECKING:
    from corral.spec.job import JobSpec, UnifiedJob
    from corral.spec.role import Role

OF_JOB: Final[Any] = Field(
    "",
    max_length=253,
    description='The pinned cell that all of it has to be in, one of its virtual cluster\'s; "" is any place.',
)
"""The field of a job."""
OF_ROLE: Final[Any] = Field(
    "", max_length=253, description='The pinned cell that its tasks have to be in; "" is the job\'s.'
)
"""The field of a role."""


def inconsistencies(job: UnifiedJob) -> Iterator[tuple[Path, str]]:
    """Pinned cells of opportunistic jobs."""
    named: dict[Path, str] = {("spec", "pinnedCell"): job.spec.pinned_cell}
    named |= {("spec", "roles", at, "pinnedCell"): role.pinned_cell for at, role in enumerate(job.spec.roles)}
    for path, cell in named.items():
        if cell and job.priority < 0:
            yield path, "a job of a priority below 0 has no right to a cell; leave one of them out"


def requested(spec: JobSpec, role: Role) -> str:
    """The cell that a role requests: its own or the job's; "" is none."""
    return role.pinned_cell or spec.pinned_cell


def shared(cells: Collection[str], of_job: str) -> str | None:
    """The one cell of a gang whose tasks with devices request these; `of_job` if none has devices, None if several."""
    return None if len(cells) > 1 else next(iter(cells), of_job)


def weaker(cell: str) -> Series[str]:
    """Any place."""
    if cell:
        yield [Weaker(0.2, "", cell, "", "anywhere, not only in that pinned cell", "")]


def unmet_by_several(cells: Collection[str]) -> Unmet:
    """Why a gang with roles in different pinned cells never starts: a search uses only one of them."""
    where = " and ".join(f"the pinned cell {cell}" if cell else "no pinned cell" for cell in sorted(cells))
    message = (
        f"Its roles name {where}, and only the preset hived places the roles of one job in different cells; "
        "name one cell for all of them."
    )
    return Unmet("pinned-cells", message, {"cells": len(cells)})


def unknown(cell: str, queue: str, names: Sequence[str]) -> Unmet:
    """Why a gang never starts whose queue has only cells of other names."""
    there = f"those it has are {', '.join(names)}" if names else "it has none"
    message = f"The queue {queue} has no pinned cell {cell}; {there}."
    return Unmet("no-pinned-cell", message, {"cells": len(names)})


def unmet(cell: str, needed: int, free: int, total: int) -> Unmet:
    """Why a gang does not fit into its cell, which has `total` devices."""
    counts = {"needed": needed, "free": free, "total": total}
    asks = f"Needs {counted(needed, 'device')} in the pinned cell {cell}"
    if needed > total:
        return Unmet("pinned-cell", f"{asks}, which has {total}.", counts)
    scattered = ", but not as it asks for them" if free >= needed else ""
    return Unmet("pinned-cell", f"{asks}; {free} of {total} are free there{scattered}.", counts)
