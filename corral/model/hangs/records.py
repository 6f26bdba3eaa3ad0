"""The JSON shapes of jobs that hang, and what is stored of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final

from corral.model.hangs.patience import HangAction
from corral.model.records import EventRecord, Record, one_of

HUNG: Final = "job.hung"
HUNG_OVER: Final = "job.hang-over"


def bundle_name(now: float) -> str:
    """The name of a bundle that is made now, in seconds since 1970."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y%m%d-%H%M%S")


class Hang(Record, frozen=True):
    """One time that a job hung."""

    at: str
    """When it was found."""
    silent_seconds: float
    """How long it had shown no progress."""
    why: str
    """What its ranks did, in one sentence."""
    odd: tuple[str, ...] = ()
    """The tasks that the others wait for; none if all are alike."""
    collective: str = ""
    """The collective in which the odd tasks stand, or were last."""
    number: int = 0
    """The number of that collective in its group by the flight recorder; 0 is not known."""
    place: str = ""
    """The line of the program where they stand."""
    action: Annotated[str, one_of(*map(str, HangAction))] = "warn"
    """What was done about it."""
    bundle: str = ""
    """The name of the bundle of stacks, logs and figures; "" if it could not be kept."""
    bytes: int = 0


class HangList(Record, frozen=True):
    """The times that a job hung, the latest first."""

    items: tuple[Hang, ...] = ()


def hang_of(event: EventRecord) -> Hang:
    """The hang that a stored event tells of."""
    data = event.data
    return Hang(
        event.at,
        float(data.get("silentSeconds", 0)),
        str(data.get("why", "")),
        tuple(map(str, data.get("odd", ()))),
        str(data.get("collective", "")),
        int(data.get("number", 0)),
        str(data.get("place", "")),
        str(data.get("action", "warn")),
        str(data.get("bundle", "")),
        int(data.get("bytes", 0)),
    )
