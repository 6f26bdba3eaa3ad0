"""A candidate policy beside the one in force: what is asked of a server, and what the comparison tells.

Times are RFC 3339 UTC strings, durations in seconds, devices means over an hour or over all of it.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from corral.model.records import Record, one_of
from corral.model.what_if_progress import CANCELLED, DONE, FAILED, RUNNING, WhatIfProgress, WhatIfRefusal

MOST_DIFFERENCES: Final = 10_000
LONGEST_WITHIN: Final = 86_400.0
MOST_NAME: Final = 200
"""Characters of a policy."""
WEEK_HOURS: Final = 7 * 24
MOST_RUNNING_HOURS: Final = 2 * WEEK_HOURS
"""Hours that a running shadow compares, at most."""
STOPPED: Final = "stopped"


class Counts(msgspec.Struct, rename="camel"):
    """How many decisions both made, or one of them alone."""

    alike: int = 0
    """Made by both at about the same time."""
    elsewhere: int = 0
    """Those of the alike that placed tasks on other nodes."""
    only_in_force: int = 0
    only_candidate: int = 0

    @property
    def otherwise(self) -> int:
        """The decisions that one of both made alone."""
        return self.only_in_force + self.only_candidate


class Figures(Record, frozen=True):
    """One queue, or all of them, under one of both."""

    started: int = 0
    wait_p50: float | None = None
    """Of the jobs that started; None: none did."""
    wait_p95: float | None = None
    preempted: int = 0
    devices: float = 0.0
    """The devices in use."""
    waiting: int = 0
    """Jobs that wait at the end."""


class QueueRow(Record, frozen=True):
    """One queue under both."""

    queue: str
    in_force: Figures
    candidate: Figures


class HourRow(Record, frozen=True):
    """One clock hour, or the part of it that was compared."""

    at: str
    seconds: float
    decisions: Counts
    in_force: Figures
    candidate: Figures
    devices: int
    """The devices that could be used at its end."""
    queues: tuple[QueueRow, ...]


class Difference(Record, frozen=True):
    """A decision that one of both made alone; with both times, one that they made at different times."""

    kind: str
    """`start`, `preempt` or `resize`."""
    job: str
    name: str
    user: str
    queue: str
    in_force: str | None
    """When it was made; None: it was not."""
    candidate: str | None
    why: str
    """Why a job still waited under the other one, or why it gave devices back; "" if that is not known."""


class Moved(Record, frozen=True):
    """A job that starts at another time."""

    job: str
    name: str
    user: str
    queue: str
    seconds: float
    """Earlier under the candidate if above 0."""
    complete: bool
    """False: it started under one of both only, so the difference is at least so large."""


class ShadowReport(Record, frozen=True):
    """A candidate beside the policy in force."""

    begin: str
    end: str
    in_force: str
    """The policy that decided at the beginning."""
    candidate: str
    within: float
    """Seconds by which decisions that are alike may differ."""
    decisions: dict[str, Counts]
    """By kind."""
    undecided: int
    """Decisions of the last seconds, of which is not known whether both make them."""
    hours: tuple[HourRow, ...]
    total: HourRow
    differences: tuple[Difference, ...]
    """The first ones."""
    differences_left_out: int
    """Later decisions that one of both made alone."""
    earlier: int
    """Jobs that start earlier under the candidate, by more than `within`."""
    later: int
    same: int
    gains: tuple[Moved, ...]
    losses: tuple[Moved, ...]
    assumptions: tuple[str, ...]
    notes: tuple[str, ...]
    problem: str = ""
    """Why it ends early, in one sentence; "" if it does not."""


class ShadowRequest(Record, frozen=True, forbid_unknown_fields=True):
    """A candidate that decides beside the server's policy, on the inputs of its journal."""

    policy: str = ""
    """`NAME` or `NAME+PART`; "": that of the documents."""
    documents: str = ""
    """Documents as `corral apply` takes them, instead of those in force; "": those in force."""
    since: str = ""
    """When the candidate begins; "": a day ago."""
    until: str = ""
    """Up to when both are compared; "": until now."""
    anew: bool = False
    """Whether the candidate begins each hour with what is in force then."""
    within: float = 60.0
    """Seconds by which equal decisions may differ."""
    differences: int = 20
    """How many decisions that differ are listed."""


class ShadowQuestion(msgspec.Struct, frozen=True):
    """A request as control answers it; times are in seconds since 1970."""

    policy: str
    documents: tuple[str, ...] | None
    """Canonical texts; None: those in force."""
    candidate: str
    """The candidate, for people."""
    since: float
    until: float | None
    anew: bool
    within: float
    differences: int
    idle_until: float = 0.0
    """Up to when nothing happened if the journal ends before."""


class ShadowStatus(Record, frozen=True):
    """A comparison that a server makes."""

    id: str
    state: Annotated[str, one_of(RUNNING, DONE, FAILED, CANCELLED)]
    asked_at: str
    progress: WhatIfProgress = WhatIfProgress()
    answer: ShadowReport | None = None
    """Once it is done; lists and events have none."""
    error: WhatIfRefusal | None = None
    """Once it has failed."""


class ShadowComparisons(Record, frozen=True):
    """The caller's own comparisons that this server keeps, oldest first."""

    items: tuple[ShadowStatus, ...] = ()


class RunningShadowRequest(Record, frozen=True, forbid_unknown_fields=True):
    """A candidate that the server lets decide beside its policy from now on, hour by hour."""

    policy: str = ""
    """`NAME` or `NAME+PART`; "": that of the documents."""
    documents: str = ""
    """Documents as `corral apply` takes them, instead of those in force; "": those in force."""
    since: str = ""
    """When the candidate begins; "": now."""
    hours: float = WEEK_HOURS
    """After how many hours from its beginning on it ends by itself."""
    anew: bool = False
    """Whether the candidate begins each hour with what is in force then."""
    within: float = 60.0
    """Seconds by which equal decisions may differ."""
    differences: int = 20
    """How many decisions that differ are listed."""


class RunningShadow(Record, frozen=True):
    """The running shadow of a server, or the last one that ended."""

    state: Annotated[str, one_of(RUNNING, DONE, FAILED, STOPPED)]
    candidate: str
    user: str
    """Who began it."""
    asked_at: str
    begin: str
    """From when on both are compared."""
    end: str
    """When it ends by itself."""
    anew: bool
    reported_at: str | None = None
    """Up to when its report goes; None: there is none yet."""
    next_at: str | None = None
    """When the next report is made; None: it has ended, or one is being made."""
    progress: WhatIfProgress | None = None
    """How far the report is that is being made."""
    trouble: str = ""
    """Why the last report could not be made, though it goes on."""
    error: WhatIfRefusal | None = None
    """Why it failed."""


class RunningQuestion(msgspec.Struct, frozen=True):
    """A running shadow as control begins it."""

    question: ShadowQuestion
    """With `until`, when it ends by itself."""
    user: str
