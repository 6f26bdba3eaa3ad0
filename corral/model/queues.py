"""Why: what teams are owed is one tree of queues, whatever document or dialect it was written in.

Amounts are by resource name: `devices`, `devices/MODEL` (2, or 0.5: to the thousandth), `cpu` (thousandths of a
processor), `memory` (bytes). A name that is absent from `limit` or a limit on borrowing, lending, users or groups bounds
nothing; one that is absent from `guaranteed` or `deserved` is 0.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

Amounts = dict[str, int | float]


class WithinQueue(StrEnum):
    """Which running gangs of its own queue a waiting gang may have ended."""

    NEVER = "never"
    LOWER_PRIORITY = "lower-priority"


class Reclaim(StrEnum):
    """Which gangs of other queues, that run beyond what their queues deserve, a queue below its own may have ended."""

    NEVER = "never"
    LOWER_PRIORITY = "lower-priority"
    ANY = "any"


class CellQuota(msgspec.Struct, frozen=True):
    """`count` whole cells of a level (or of a cell type) that a queue owns, wherever they are; "" is any device model."""

    level: str
    count: int
    model: str = ""
    chain: str = ""
    """Only cells of this chain (`Device.chain`); "" is any."""


class QueueSpec(msgspec.Struct, frozen=True):
    """One queue. With `cells` or `pinned_cells` it is a virtual cluster: what it owns, it gets within the grace period."""

    name: str
    parent: str = ""
    weight: float = 1.0
    """Its part, beside its siblings', of what nobody deserves or what is lent."""
    guaranteed: Amounts = {}
    """Kept for it even while it is idle: never lent."""
    deserved: Amounts = {}
    """Its own: lent while it is idle, reclaimed when it wants it back."""
    limit: Amounts = {}
    """The most that its jobs and those of the queues below it hold together."""
    borrowing_limit: Amounts = {}
    """The most above `deserved`."""
    lending_limit: Amounts = {}
    """The most of `deserved` that others may use."""
    cells: tuple[CellQuota, ...] = ()
    pinned_cells: tuple[str, ...] = ()
    """Names of cells that are its own, and of nobody else, wherever they stand."""
    pinned_names: tuple[str, ...] = ()
    """What documents call the same cells, in the same order, where that is otherwise."""
    min_runtime_seconds: float = 0.0
    """So long a gang of this queue runs before another borrower may reclaim what it holds; owners of cells do not wait."""
    user_limit: Amounts = {}
    """The most that the jobs of one user in it hold together."""
    group_limit: Amounts = {}
    """The most that the jobs of the members of one group in it hold together."""
    within_queue: WithinQueue = WithinQueue.LOWER_PRIORITY
    reclaim: Reclaim = Reclaim.ANY
    half_life_seconds: float = 0.0
    """How fast past use is forgotten in the fair order; 0 counts only what is held now."""


class QueueUsage(msgspec.Struct, frozen=True):
    """What a queue with a half-life held on average until `at`, the past counting ever less."""

    queue: str
    at: float
    """Seconds since 1970: it has held the same since then."""
    amounts: dict[str, float] = {}
    """By resource name, in the scheduler's units: thousandths of devices and processors, bytes."""


class UserUsage(msgspec.Struct, frozen=True):
    """What one user of a queue held in it on average until `at`, the past counting ever less."""

    queue: str
    user: str
    at: float
    """Seconds since 1970: they have held the same since then."""
    amounts: dict[str, float] = {}
    """As of `QueueUsage`."""


DEFAULT_QUEUE = QueueSpec("default")
"""The queue of jobs that name none; it always exists."""
