"""Cordons: nodes that people closed to new tasks.

A cordon is kept apart from the node's health, because a cordoned node is not a broken one.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

import msgspec

from corral.model.records import Record, one_of, rfc3339

VALIDATING: Final = "corral.dev/validating"
"""The key of the taint that closes a node to all but its validation job."""


class Drain(StrEnum):
    """How the tasks that run on a cordoned node are treated."""

    NONE = ""
    """They stay."""
    NOW = "now"
    """They are preempted and run again elsewhere."""
    AFTER_JOBS = "after-jobs"
    """They run until they end by themselves."""


class Cordon(msgspec.Struct, frozen=True):
    """A node (`engine/node`) that takes no new tasks since `at` (seconds since 1970)."""

    node: str
    by: str
    why: str
    at: float
    drain: Drain = Drain.NONE
    grace_seconds: float | None = None
    """Seconds between the stop signal and KILL for drained tasks; None: as their jobs say."""
    validating: bool = False
    """Whether it lets tasks in that tolerate the taint `VALIDATING`: the node's validation job."""

    @property
    def reason(self) -> str:
        """The cordon as one clause: `cordoned by dina: fan broken`."""
        return f"{'being drained' if self.drain else 'cordoned'} by {self.by}" + (f": {self.why}" if self.why else "")


class CordonView(Record, frozen=True):
    """A cordon in the API: its author, reason and start; `drain` is "", `now` or `after-jobs`."""

    by: str
    why: str
    at: str
    drain: Annotated[str, one_of(*Drain)] = ""
    grace_seconds: float | None = None


CORDONS_CHANGED: Final = "node.cordons-changed"
"""The kind of the intent that makes control read the cordons again; its job is ""."""


def cordon_view(cordon: Cordon) -> CordonView:
    """Convert a cordon to the API's form."""
    return CordonView(cordon.by, cordon.why, rfc3339(cordon.at), str(cordon.drain), cordon.grace_seconds)
