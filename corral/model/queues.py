"""Queue specifications: the tree of queues with quotas, limits and preemption rules, for every document format.

Amounts are by resource name: `devices`, `devices/MODEL` (2, or 0.5: to the thousandth), `cpu` (thousandths of a
processor), `memory` (bytes). A name that is absent from `limit` or a limit on borrowing, lending, users or groups is
unbounded; one that is absent from `guaranteed` or `deserved` is 0.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

Amounts = dict[str, int | float]


class WithinQueue(StrEnum):
    """Which running gangs of its own queue a waiting gang may preempt."""

    NEVER = "never"
    LOWER_PRIORITY = "lower-priority"


class Reclaim(StrEnum):
    """Which gangs of queues beyond their deserved amounts a queue below its own may preempt."""

    NEVER = "never"
    LOWER_PRIORITY = "lower-priority"
    ANY = "any"


class CellQuota(msgspec.Struct, frozen=True):
    """`count` whole cells of a level (or cell type) that a queue owns, at no fixed place; "" is any device model."""

    level: str
    count: int
    model: str = ""
    chain: str = ""
    """Only cells of this chain (`Device.chain`); "" is any."""


class QueueSpec(msgspec.Struct, frozen=True):
    """One queue. With `cells` or `pinned_cells` it is a virtual cluster: it gets its cells within the grace period."""

    name: str
    parent: str = ""
    weight: float = 1.0
    """Its weight among its siblings, for amounts that no queue deserves or that are lent."""
    guaranteed: Amounts = {}
    """Reserved for it even while it is idle: never lent."""
    deserved: Amounts = {}
    """Its own amounts: lent while it is idle, reclaimed when it needs them."""
    limit: Amounts = {}
    """The most that its jobs and those of the queues below it hold together."""
    borrowing_limit: Amounts = {}
    """The most that it may hold above `deserved`."""
    lending_limit: Amounts = {}
    """The most of `deserved` that others may use."""
    cells: tuple[CellQuota, ...] = ()
    pinned_cells: tuple[str, ...] = ()
    """Names of specific cells that it owns alone."""
    pinned_names: tuple[str, ...] = ()
    """The documents' names of the same cells, in the same order."""
    min_runtime_seconds: float = 0.0
    """Seconds that its gangs run before another borrower may reclaim from them; owners of cells need not wait."""
    user_limit: Amounts = {}
    """The most that the jobs of one user hold together in this queue."""
    group_limit: Amounts = {}
    """The most that the jobs of one group's members hold together in this queue."""
    within_queue: WithinQueue = WithinQueue.LOWER_PRIORITY
    reclaim: Reclaim = Reclaim.ANY
    half_life_seconds: float = 0.0
    """Half-life of past usage in the fair order, in seconds; 0 counts current usage only."""


class QueueUsage(msgspec.Struct, frozen=True, gc=False):
    """The decayed average usage of a queue with a half-life, as of `at`."""

    queue: str
    at: float
    """Seconds since 1970; its usage has not changed since then."""
    amounts: dict[str, float] = {}
    """By resource name, in the scheduler's units: thousandths of devices and processors, bytes."""


class UserUsage(msgspec.Struct, frozen=True, gc=False):
    """The decayed average usage of one user in a queue, as of `at`."""

    queue: str
    user: str
    at: float
    """Seconds since 1970; the usage has not changed since then."""
    amounts: dict[str, float] = {}
    """In the units of `QueueUsage.amounts`."""


DEFAULT_QUEUE = QueueSpec("default")
"""The queue of jobs that name none; it always exists."""
