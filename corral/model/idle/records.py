"""The JSON shapes of jobs with idle devices."""

from __future__ import annotations

from typing import Annotated

from corral.model.idle.machine import Action, IdleState
from corral.model.records import Record, one_of


class IdleJob(Record, frozen=True):
    """One job whose devices are idle, or whose owner was warned."""

    job: str
    name: str
    user: str
    queue: str
    state: Annotated[str, one_of(*map(str, IdleState))]
    since: str | None
    """When its devices became idle."""
    idle: int
    """Devices that are idle."""
    held: int
    wasted_device_seconds: float
    warned_at: str | None = None
    acted_at: str | None = None
    extended_at: str | None = None
    extended_until: str | None = None
    reason: str = ""
    """Why its owner asked for more time."""
    dry_run: bool = False
    """Whether nothing is done about it, and administrators alone are told."""
    action: Annotated[str, one_of(*map(str, Action), "")] = ""
    """What is done about it after the grace, or was done at `actedAt`; `warn` is nothing more, "" is not known."""
    acts_at: str | None = None
    """When it is done unless the devices are used; null: nothing is to come."""


class IdleList(Record, frozen=True):
    """Jobs with idle devices, those first that waste the most."""

    items: tuple[IdleJob, ...] = ()
