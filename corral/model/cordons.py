"""Why: a node that takes no new tasks is not a broken one: what people closed, and why, is kept apart from its health."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from corral.model.records import Record, rfc3339


class Drain(StrEnum):
    """What becomes of the tasks that run on a cordoned node."""

    NONE = ""
    """They stay."""
    NOW = "now"
    """They yield, and run again elsewhere."""
    AFTER_JOBS = "after-jobs"
    """They end by themselves."""


class Cordon(msgspec.Struct, frozen=True):
    """A node (`engine/node`) that takes no new tasks, since `at`."""

    node: str
    by: str
    why: str
    at: float
    drain: Drain = Drain.NONE
    grace_seconds: float | None = None
    """What drained tasks get between being asked to end and being killed; None: as their jobs say."""

    @property
    def reason(self) -> str:
        """One clause for people."""
        return f"{'being drained' if self.drain else 'cordoned'} by {self.by}" + (f": {self.why}" if self.why else "")


class CordonView(Record, frozen=True):
    """Who closed a node to new tasks, why and since when; `drain` is "", `now` or `after-jobs`."""

    by: str
    why: str
    at: str
    drain: str = ""
    grace_seconds: float | None = None


CORDONS_CHANGED: Final = "node.cordons-changed"
"""The kind of the intent that tells control to read the cordons again; its job is ""."""


def cordon_view(cordon: Cordon) -> CordonView:
    """A cordon as the API shows it."""
    return CordonView(cordon.by, cordon.why, rfc3339(cordon.at), str(cordon.drain), cordon.grace_seconds)
