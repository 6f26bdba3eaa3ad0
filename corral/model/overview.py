"""Why: what the scheduler knows (who is owed what, who is next and why not yet, whose cells are whose) is shown as it is.

These values are the API's JSON (see `corral.model.records`). Amounts are by resource name: `devices`, `devices/MODEL`
(2, or 2.5: to the thousandth), `cpu` (thousandths of a processor), `memory` (bytes); a name that is absent is 0, and in
a limit: not bounded.
"""

from __future__ import annotations

from typing import Any

from corral.model.records import Record
from corral.model.views import ReasonView

Amounts = dict[str, int | float]


class CellShare(Record, frozen=True):
    """The cells of one type that a queue owns on an engine, as counts of cells.

    `owned` = `bound` + `free` + `lent` + `missing`: bound ones have its jobs in them (or are pinned), free ones could be
    bound at once, lent ones after guests yielded, and missing ones not even then (bad or absent hardware).
    """

    engine: str
    level: str
    model: str
    """"" when its devices are of several models."""
    devices: int | float
    """How many devices one such cell has; a slice is a part of one."""
    owned: int
    bound: int = 0
    free: int = 0
    lent: int = 0
    missing: int = 0


class QueueStanding(Record, frozen=True):
    """What one queue, with the queues below it, is owed and holds now."""

    name: str
    parent: str = ""
    depth: int = 0
    """How many queues are above it."""
    weight: float = 1.0
    guaranteed: Amounts = {}
    """Kept for it, never lent."""
    deserved: Amounts = {}
    """Its own: lent while it is idle. The devices of cells that it owns are in `ownedDevices`."""
    limit: Amounts = {}
    """The most that it may hold."""
    borrowing_limit: Amounts = {}
    """The most above what it deserves."""
    used: Amounts = {}
    fair: dict[str, float] = {}
    """What it should hold now as all queues want it: what it deserves, and by weight its part of the rest."""
    borrowed: Amounts = {}
    """What it uses beyond its own: what it deserves and, of devices, those of the cells that it owns."""
    lent: Amounts = {}
    """What others use of its own; devices only."""
    lent_to: Amounts = {}
    """By the other queue."""
    borrowed_from: Amounts = {}
    """Devices of others that it uses, by whose they are; "" is what is nobody's own."""
    cells: tuple[CellShare, ...] = ()
    pinned: tuple[str, ...] = ()
    """The ids of the cells that are its own wherever they stand."""
    owned_devices: int | float = 0
    """How many devices the cells that it owns have."""
    running: int = 0
    """Jobs that hold something."""
    guests: int = 0
    """Those of them with tasks outside the cells that guarantee them; 0 where their queue owns no cells."""
    waiting: int = 0
    """Jobs that wait to start, or of which a part does."""
    wanted: Amounts = {}
    """What they ask for together to begin."""


class QueueView(Record, frozen=True):
    """One queue, how many of its jobs run and wait, and what it is owed and holds."""

    name: str
    running: int = 0
    waiting: int = 0
    devices: int | float = 0
    doc: dict[str, Any] = {}
    standing: QueueStanding | None = None
    """As the scheduler counts it, with the queues below it; None while it does not answer."""
    members_only: bool = False
    """Whether only members of groups that grant or manage it submit to it."""
    managers: tuple[str, ...] = ()
    """Who manages it, beside administrators: the first hundred; only where one queue is asked for."""


class LineEntry(Record, frozen=True):
    """One job of the waiting line. What it asks for is what it needs to begin, or all that it could still get."""

    position: int
    """Counts jobs from 1 in the line of all queues: the order in which the next cycle looks at them."""
    job: str
    name: str
    user: str
    queue: str
    priority: int
    submitted_at: str
    tasks: int
    devices: int | float
    """Parts of devices count as parts: 2.5."""
    cpu_millis: int = 0
    memory_bytes: int = 0
    model: str = ""
    """The device model asked for; "" is any."""
    level: str = ""
    """The level that all of it has to be inside; "" is none."""
    grows: bool = False
    """It runs already, and could get so many more tasks."""
    yielding: bool = False
    """Others were told to end for it: its place is kept."""
    reason: ReasonView | None = None
    """The binding constraint; None while no cycle has looked at it."""
    possible: bool = True
    """Whether it could run on the machines known now if they were empty."""


class WaitingLine(Record, frozen=True):
    """One page of the line; `total` jobs wait in it, `next` is what `after` takes to read on."""

    at: str
    total: int
    items: tuple[LineEntry, ...] = ()
    next: str | None = None


class DeviceUse(Record, frozen=True):
    """One task on a device; `share` is its part of it in percent of computing power, 100 for all."""

    job: str
    name: str
    user: str
    queue: str
    role: str
    index: int
    priority: int = 0
    standing: str = ""
    """`guaranteed` in a cell of its queue, `guest` outside; "" on an engine where nobody owns cells."""
    leaving: bool = False
    """It was told to end."""
    share: int = 100


class CellDevice(Record, frozen=True):
    """One device of a cell; `state` is `free`, `used`, `leaving`, `unhealthy` or `closed` (its node takes no tasks)."""

    index: int
    id: str
    kind: str
    model: str = ""
    state: str = "free"
    reason: str = ""
    """Why it is unhealthy or closed."""
    owner: str = ""
    """The queue whose cell it is in now."""
    pinned: bool = False
    uses: tuple[DeviceUse, ...] = ()


class CellState(Record, frozen=True):
    """One cell: what it has, whose it is, who uses it, and the cells in it as far as they were asked for."""

    id: str
    """Names it in `under`: `ENGINE|LEVEL:NAME`; "" for the whole cluster."""
    level: str
    name: str
    devices: int
    free: int = 0
    """Devices that can be given now."""
    used: int = 0
    leaving: int = 0
    """Devices whose tasks were told to end."""
    guests: int = 0
    """Devices used by guests."""
    unhealthy: int = 0
    closed: int = 0
    """Devices of nodes that take no new tasks."""
    owners: dict[str, int] = {}
    """By queue, how many of its devices are bound to it."""
    owner: str = ""
    """The queue that all of it is bound to."""
    pinned: bool = False
    whole: bool = False
    """Whether it is of a type that somebody owns, and could be bound: nothing bound overlaps it."""
    queues: Amounts = {}
    """By queue, how many of its devices are used; of a device in parts each uses its part."""
    state: str = ""
    """`cordoned`, `not-ready` or `unknown`; "" when all is well. Of nodes, and of engines that do not answer."""
    reason: str = ""
    inside: int = 0
    """How many cells, or devices, are directly in it; `cells` and `holds` may have fewer: ask with `under`."""
    cells: tuple[CellState, ...] = ()
    holds: tuple[CellDevice, ...] = ()


class CellTree(Record, frozen=True):
    """Part of the tree of cells; `next` is what `after` takes for more of what is directly in the cell asked for."""

    at: str
    cell: CellState
    next: str | None = None
