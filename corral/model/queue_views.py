"""The scheduler's state in the API: queue quotas and usage, the waiting list, and the tree of cells.

These values are the API's JSON (see `corral.model.records`). Amounts are by resource name: `devices`, `devices/MODEL`
(2, or 2.5: to the thousandth), `cpu` (thousandths of a processor), `memory` (bytes). An absent name is 0, and in a
limit unbounded.
"""

from __future__ import annotations

from typing import Annotated, Any

from corral.model.records import Record, one_of
from corral.model.views import EstimateView, ForecastView, ReasonView

Amounts = dict[str, int | float]


class CellShare(Record, frozen=True):
    """The cells of one type that a queue owns on an engine, as counts of cells.

    `owned` = `bound` + `free` + `lent` + `missing`. Bound cells hold its jobs (or are pinned). Free ones could be bound
    at once, and lent ones after their guests left. Missing ones could not even then (bad or absent hardware).
    """

    engine: str
    level: str
    model: str
    """"" if its devices are of several models."""
    devices: int | float
    """Devices per cell; a slice is a fraction of a device."""
    owned: int
    bound: int = 0
    free: int = 0
    lent: int = 0
    missing: int = 0


class QueueStanding(Record, frozen=True):
    """One queue's entitlement and current use, including the queues below it."""

    name: str
    parent: str = ""
    depth: int = 0
    """The number of queues above it."""
    weight: float = 1.0
    guaranteed: Amounts = {}
    """Reserved for it, never lent."""
    deserved: Amounts = {}
    """Its own amounts, lent while idle. Devices of cells that it owns are in `ownedDevices` instead."""
    limit: Amounts = {}
    """The most that it may hold."""
    borrowing_limit: Amounts = {}
    """The most that it may hold above its deserved amounts."""
    used: Amounts = {}
    fair: dict[str, float] = {}
    """Its fair share given the demand of all queues: its deserved amounts, plus a part by weight of the rest."""
    borrowed: Amounts = {}
    """Its use beyond its own amounts: beyond deserved, and for devices also beyond the cells that it owns."""
    lent: Amounts = {}
    """Its own devices that others use; devices only."""
    lent_to: Amounts = {}
    """The lent amounts by borrowing queue."""
    borrowed_from: Amounts = {}
    """The borrowed devices by owning queue; "" is devices that no queue owns."""
    cells: tuple[CellShare, ...] = ()
    pinned: tuple[str, ...] = ()
    """The ids of its pinned cells."""
    owned_devices: int | float = 0
    """Devices in all cells that it owns."""
    running: int = 0
    """Jobs that hold resources."""
    guests: int = 0
    """Running jobs with tasks outside guaranteed cells; 0 if the queue owns no cells."""
    waiting: int = 0
    """Jobs that wait to start, wholly or in part."""
    wanted: Amounts = {}
    """The amounts that all waiting jobs need to begin."""


class QueueView(Record, frozen=True):
    """One queue, the numbers of its running and waiting jobs, and its entitlement and use."""

    name: str
    running: int = 0
    waiting: int = 0
    devices: int | float = 0
    doc: dict[str, Any] = {}
    standing: QueueStanding | None = None
    """The scheduler's figures, including the queues below it; None while it does not answer."""
    members_only: bool = False
    """Whether only members of groups that grant or manage it may submit to it."""
    may_submit: bool = True
    """Whether the caller may submit jobs to it, and it takes new jobs."""
    managers: tuple[str, ...] = ()
    """Its managers besides administrators, at most 100; only in answers about a single queue."""


class LineEntry(Record, frozen=True):
    """One job of the waiting list. Its amounts are those it needs to begin, or all that it could still get."""

    position: int
    """Its position in the waiting list of all queues, from 1: the order in which the next cycle visits jobs."""
    job: str
    name: str
    user: str
    queue: str
    priority: int
    submitted_at: str
    tasks: int
    devices: int | float
    """Fractions of devices count as fractions: 2.5."""
    cpu_millis: int = 0
    memory_bytes: int = 0
    model: str = ""
    """The requested device model; "" is any."""
    level: str = ""
    """The level whose one cell must hold the whole gang; "" is none."""
    grows: bool = False
    """Whether it runs already and waits for more tasks."""
    yielding: bool = False
    """Whether other jobs were told to end for it; its place is reserved."""
    reason: ReasonView | None = None
    """The binding constraint; None before the first cycle that looks at it."""
    possible: bool = True
    """Whether it could run on the machines known now if they were empty."""
    estimate: EstimateView | None = None
    """When it is likely to start; its `after` is empty."""


class WaitingLine(Record, frozen=True):
    """One page of the waiting list of `total` jobs; pass `next` as `after` to read the next page."""

    at: str
    total: int
    items: tuple[LineEntry, ...] = ()
    next: str | None = None
    forecast: ForecastView | None = None
    """The forecast from which the estimates come; None if there is none yet."""


class DeviceUse(Record, frozen=True):
    """One task on a device; `share` is its fraction of the device's computing power in percent, 100 for the whole."""

    job: str
    name: str
    user: str
    queue: str
    role: str
    index: int
    priority: int = 0
    standing: Annotated[str, one_of("guaranteed", "guest", "")] = ""
    """`guaranteed` in a cell of its queue, `guest` outside; "" on an engine without owned cells."""
    leaving: bool = False
    """Whether it was told to end."""
    share: int = 100


class CellDevice(Record, frozen=True):
    """One device of a cell; `state` is `free`, `used`, `leaving`, `unhealthy` or `closed` (its node takes no tasks)."""

    index: int
    id: str
    kind: str
    model: str = ""
    state: Annotated[str, one_of("free", "used", "leaving", "unhealthy", "closed")] = "free"
    reason: str = ""
    """Why it is unhealthy or closed."""
    owner: str = ""
    """The queue that its cell is bound to now."""
    pinned: bool = False
    uses: tuple[DeviceUse, ...] = ()


class CellState(Record, frozen=True):
    """One cell with its device counts, owners and users, and the cells in it to the requested depth."""

    id: str
    """Its id for the parameter `under`: `ENGINE|LEVEL:NAME`; "" for the whole cluster."""
    level: str
    name: str
    devices: int
    free: int = 0
    """Devices that can be allocated now."""
    used: int = 0
    leaving: int = 0
    """Devices whose tasks were told to end."""
    guests: int = 0
    """Devices used by guests."""
    unhealthy: int = 0
    closed: int = 0
    """Devices of nodes that take no new tasks."""
    owners: dict[str, int] = {}
    """By queue, the number of its devices bound to that queue."""
    owner: str = ""
    """The queue that the whole cell is bound to."""
    pinned: bool = False
    whole: bool = False
    """Whether its type is owned by some queue and no bound cell overlaps it, so that it could be bound."""
    queues: Amounts = {}
    """By queue, the number of its devices in use; tasks with a fraction of a device count that fraction."""
    state: Annotated[str, one_of("", "cordoned", "not-ready", "unknown")] = ""
    """Of a node or an engine: `cordoned`, `not-ready` or `unknown`; "" if it is healthy."""
    reason: str = ""
    inside: int = 0
    """The number of cells or devices directly in it; `cells` and `holds` may have fewer: query with `under`."""
    cells: tuple[CellState, ...] = ()
    holds: tuple[CellDevice, ...] = ()


class CellTree(Record, frozen=True):
    """A part of the cell tree; pass `next` as `after` for more children of the requested cell."""

    at: str
    cell: CellState
    next: str | None = None
