"""Draw the pictures in `scheduling.md` from the scheduler's own state.

A scene runs an example of the page and draws the result: the same examples give the same pictures, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from corral.kernel import units
from corral.scheduler.queues.fair_share import Fairness
from corral.scheduler.queues.lending import lending, owned_devices
from corral.scheduler.queues.queue_tree import QueueNode
from docs.drawing import COLOURS, Drawing
from docs.worlds import World

FOLDER = "images/scheduling"
_SIDE, _GAP, _APART, _PAD = 26.0, 2.0, 6.0, 8.0
_WIDEST = 860.0
_DEVICES = 0
"""The index of devices in the vectors of queues."""


class Seen(NamedTuple):
    """One device as it is now."""

    index: int
    group: str
    """The name of its innermost cell: a PCIe switch, NUMA node or other level."""
    job: str
    queue: str
    guest: bool
    leaves: bool
    owner: str
    """The virtual cluster whose cell it is in now."""


Node = tuple[str, list[Seen]]
Rack = tuple[str, list[Node]]


def look(world: World) -> list[Rack]:
    """Every device of a world, by rack and node."""
    cluster, racks = world.cluster, dict[str, list[Node]]()
    holders, gangs = cluster.holders(), cluster.gangs.by_job
    owners = _owners(world)
    for node in cluster.nodes():
        devices = []
        for device in node.devices:
            job, task = holders.get(node.name, {}).get(device.index, ("", None))
            gang = gangs.get(job) if job else None
            devices.append(
                Seen(
                    device.index,
                    device.cells[-1][1] if device.cells else "",
                    str(job),
                    gang.queue if gang else "",
                    gang is not None and bool(cluster.ownership.cells) and not gang.guaranteed,
                    gang is not None and task in gang.leaving,
                    owners.get((node.name, device.index), ""),
                )
            )
        rack = dict(node.cells).get("rack", "")
        racks.setdefault(rack, []).append((node.name.partition("/")[2], devices))
    return list(racks.items())


def _owners(world: World) -> dict[tuple[str, int], str]:
    found = {}
    for cells in world.cluster.ownership.cells.values():
        for cell, bound in cells.bound.items():
            for at, mask in cells.structure.masks(*cell):
                node = cells.index.tree.nodes[at]
                for device in node.devices:
                    if mask >> device.index & 1:
                        found[node.name, device.index] = bound.owner
    return found


class Palette:
    """A colour for each queue, in the order of the documents; with one queue only, for each job."""

    def __init__(self, world: World) -> None:
        tree = world.cluster.queues
        leaves = [name for name, node in tree.nodes.items() if not node.children and name in tree.specs]
        self._numbers = {name: at % COLOURS for at, name in enumerate(name for name in leaves if name != "default")}
        self._jobs = world.requests

    def of(self, queue: str, job: str = "") -> str:
        """The style of its boxes."""
        if queue in self._numbers:
            return f"q{self._numbers[queue]}"
        return f"q{list(self._jobs).index(job) % COLOURS}" if job else "qn"

    def legend(self, kinds: Iterable[tuple[str, str]] = ()) -> Drawing:
        """The queues with their colours, then other kinds of boxes with their meaning."""
        drawing, x = Drawing(), 0.0
        for style, said in [*((self.of(name), name) for name in self._numbers), *kinds]:
            if style == "guest":
                drawing.striped(x, 0, 14, 14, "qn")
            elif style == "limit":
                drawing.line(x + 7, 0, x + 7, 14, "mark")
            elif style == "fair":
                drawing.triangle(x + 7, 3)
            else:
                drawing.rect(x + 1, 1, 12, 12, style)
            drawing.text(x + 20, 11, said, "small dim")
            x += 20 + len(said) * 5.7 + 16
        return drawing


FREE = ("free", "free")
LEAVES = ("qn leaves", "told to end")
GUEST = ("guest", "guest")
SHARES = (
    ("qn", "used of its own"),
    ("guest", "borrowed"),
    ("idle qn", "its own, idle or lent"),
    ("limit", "limit"),
    ("fair", "fair part"),
)


def machines(racks: Sequence[Rack], palette: Palette) -> Drawing:
    """The cell tree: racks, nodes and devices, each with its holder, and below it the owner of its cell."""
    drawing, x = Drawing(), 0.0
    bands = any(seen.owner for _, nodes in racks for _, devices in nodes for seen in devices)
    for rack, nodes in racks:
        inside, at = Drawing(), 0.0
        for node in nodes:
            made = _node(node, palette, bands=bands)
            inside.put(made, at, 0)
            at += made.width + 6
        top = 18 if rack else 0
        if rack:
            drawing.rect(x, 0, inside.width + 2 * _PAD, inside.height + top + 2 * _PAD - 4, "cell", round_by=6)
            drawing.text(x + _PAD, 16, rack, "small dim")
            drawing.put(inside, x + _PAD, top + 4)
            x += inside.width + 2 * _PAD + 8
        else:
            drawing.put(inside, x, 0)
            x += inside.width + 8
    return drawing


def _node(node: Node, palette: Palette, *, bands: bool) -> Drawing:
    name, devices = node
    drawing, places, x = Drawing(), [], _PAD
    for at, seen in enumerate(devices):
        if at and devices[at - 1].group != seen.group:
            x += _APART
        places.append(x)
        x += _SIDE + _GAP
    drawing.rect(0, 0, x - _GAP + _PAD, 20 + _SIDE + _PAD + (15 if bands else 0), "node", round_by=5)
    drawing.text(_PAD, 14, name, "small dim")
    top = 20.0
    for (job, queue, guest, leaves), run in _runs(devices, lambda seen: seen[2:6]):
        start, end = places[run[0]], places[run[-1]] + _SIDE
        if job:
            style, inset = f"{palette.of(queue, job)}{' leaves' if leaves else ''}", 1.0 if leaves else 0.0
            box = (start + inset, top + inset, end - start - 2 * inset, _SIDE - 2 * inset)
            (drawing.striped if guest else drawing.rect)(*box, style)
            for place in places[run[0] + 1 : run[-1] + 1]:
                drawing.line(place - _GAP / 2, top, place - _GAP / 2, top + 5, "tick")
                drawing.line(place - _GAP / 2, top + _SIDE - 5, place - _GAP / 2, top + _SIDE, "tick")
            drawing.text((start + end) / 2, top + _SIDE / 2 + 4, job, "small mid")
        for place in () if job else (places[at] for at in run):
            drawing.rect(place, top, _SIDE, _SIDE, "free")
    for owner, run in _runs(devices, lambda seen: seen.owner):
        if owner:
            start, end = places[run[0]], places[run[-1]] + _SIDE
            drawing.rect(start, top + _SIDE + 4, end - start, 4, f"band {palette.of(owner)}", round_by=1)
            drawing.text((start + end) / 2, top + _SIDE + 18, owner, "small mid dim")
    return drawing


def _runs(devices: Sequence[Seen], key: Callable[[Seen], Any]) -> list[tuple[Any, list[int]]]:
    """Runs of equal neighbours, by their indexes."""
    grouped = groupby(range(len(devices)), key=lambda at: key(devices[at]))
    return [(found, list(places)) for found, places in grouped]


def told(racks: Sequence[Rack]) -> str:
    """A description in words, for readers who cannot see the picture."""
    sentences = []
    for rack, nodes in racks:
        for name, devices in nodes:
            parts = []
            for (job, guest, leaves, owner), run in groupby(devices, key=lambda s: (s.job, s.guest, s.leaves, s.owner)):
                numbers = [seen.index for seen in run]
                span = f"{numbers[0]}-{numbers[-1]}" if len(numbers) > 1 else f"{numbers[0]}"
                words = [job or "free", "as a guest" if guest else "", "told to end" if leaves else ""]
                words.append(f"in a cell of {owner}" if owner else "")
                parts.append(f"{span} {' '.join(word for word in words if word)}")
            sentences.append(f"{f'{rack}, ' if rack else ''}{name}: {', '.join(parts)}.")
    return " ".join(sentences)


class Story:
    """Panels one after the other, each with a caption, as one picture."""

    def __init__(self, title: str, palette: Palette, kinds: Iterable[tuple[str, str]], columns: int = 3) -> None:
        self._title = title
        self._palette = palette
        self._kinds = tuple(kinds)
        self._columns = columns
        self._panels: list[Drawing] = []
        self._told: list[str] = []

    def show(self, world: World, said: str) -> None:
        """Add a panel of the machines as they are now."""
        racks = look(world)
        drawing = machines(racks, self._palette)
        self.add(drawing, said, f"{told(racks)} {_waits(world)}".strip(), _waits(world))

    def add(self, drawing: Drawing, said: str, words: str, below: str = "") -> None:
        """Add a panel with any drawing; `words` describe it."""
        panel = Drawing()
        panel.text(0, 12, said, "head")
        panel.put(drawing, 0, 22)
        if below:
            panel.text(0, panel.height + 14, below, "small dim")
        self._panels.append(panel)
        self._told.append(f"{said}: {words}")

    def svg(self) -> str:
        """The picture."""
        drawing, x, y, tall = Drawing(), 0.0, 0.0, 0.0
        for at, panel in enumerate(self._panels):
            if x and (x + panel.width > _WIDEST or not at % self._columns):
                x, y, tall = 0.0, y + tall + 18, 0.0
            drawing.put(panel, x, y)
            x, tall = x + panel.width + 24, max(tall, panel.height)
        legend = self._palette.legend(self._kinds)
        if legend.width:
            drawing.put(legend, 0, y + tall + 16)
        return drawing.document(self._title, " ".join(self._told))


def _waits(world: World) -> str:
    """The waiting jobs, each with the code of its reason."""
    by_code: dict[str, list[str]] = {}
    for job, code in world.waiting():
        by_code.setdefault(code, []).append(job)
    said = "; ".join(f"{', '.join(jobs)}: {code}" for code, jobs in by_code.items())
    return f"Waiting: {said}." if said else ""


# -- the tree of queues -----------------------------------------------------------------------------------------------


def shares(world: World, palette: Palette) -> tuple[Drawing, str]:
    """The tree of queues as bars: used of its own, borrowed, idle or lent, the limit and the fair share; and in words."""
    tree = world.cluster.queues
    hungry = frozenset(group.queue for group in world.queue.groups.values())
    fairness, owned = Fairness(world.cluster, hungry), owned_devices(world.cluster.ownership)
    lent, wide = lending(tree, owned), 420.0
    whole = tree.total[_DEVICES]
    drawing, words, y = Drawing(), [], 0.0

    def visit(node: QueueNode, depth: int) -> None:
        nonlocal y
        own, used = node.deserved[_DEVICES] + owned.get(node.name, 0), node.used[_DEVICES]
        fair = fairness.parts(node.parent)[node.name][_DEVICES]
        borrowed = max(0, used - own)
        given = sum(amount for (lender, _), amount in lent.items() if lender == node.name)
        style, unit, left = palette.of(node.name), wide / whole, 110.0
        drawing.text(depth * 16, y + 15, node.name, "head" if node.children else "")
        drawing.line(left, y + 24, left + wide, y + 24)
        if own:
            drawing.rect(left, y + 3, own * unit, 18, f"{style} idle")
        if min(own, used):
            drawing.rect(left, y + 3, min(own, used) * unit, 18, style)
        if borrowed:
            drawing.striped(left + own * unit, y + 3, borrowed * unit, 18, style)
        if node.limit[_DEVICES] < whole:
            drawing.line(left + node.limit[_DEVICES] * unit, y, left + node.limit[_DEVICES] * unit, y + 24, "mark")
        drawing.triangle(left + fair * unit, y + 24)
        said = f"own {units.devices(own)}, uses {units.devices(used)}" + (
            f", borrows {units.devices(borrowed)}" if borrowed else ""
        )
        said += (f", lends {units.devices(given)}" if given else "") + f", fair part {round(fair / units.DEVICE)}"
        drawing.text(left + wide + 12, y + 16, said, "small dim")
        words.append(f"{node.name}: {said}.")
        y += 38
        for child in node.children:
            visit(child, depth + 1)

    for top in tree.root.children:
        if top.children or any(top.used) or any(top.deserved) or owned.get(top.name):
            visit(top, 0)
    return drawing, " ".join(words)


# -- time -------------------------------------------------------------------------------------------------------------


def timeline(world: World, until: float, palette: Palette) -> tuple[Drawing, str]:
    """The jobs on each device over time, in hours; and in words."""
    rows = [(node.name, device.index) for node in world.cluster.nodes() for device in node.devices]
    hour, high, left, drawing = 110.0, 20.0, 40.0, Drawing()
    for at, (node, device) in enumerate(rows):
        drawing.text(0, at * high + 14, f"{node.partition('/')[2]}:{device}", "small dim")
    drawing.rect(left, 0, until / 3600 * hour, len(rows) * high, "cell")
    for at in range(int(until / 3600) + 1):
        drawing.line(left + at * hour, 0, left + at * hour, len(rows) * high + 4)
        drawing.text(left + at * hour, len(rows) * high + 16, f"{at} h", "small dim mid")
    for ran in sorted(world.ran, key=lambda ran: (ran.start, ran.job, ran.device)):
        x, wide = left + ran.start / 3600 * hour, (ran.end - ran.start) / 3600 * hour
        y = rows.index(ran.device) * high
        drawing.rect(x + 1, y + 1.5, wide - 2, high - 3, palette.of(ran.queue, ran.job))
        drawing.text(x + wide / 2, y + 14, ran.job, "small mid")
    spans = {ran.job: (ran.start / 3600, ran.end / 3600) for ran in world.ran}
    counts = {job: sum(ran.job == job for ran in world.ran) for job in spans}
    words = [f"{job}: {counts[job]} devices, from {spans[job][0]:g} h to {spans[job][1]:g} h." for job in spans]
    return drawing, " ".join(sorted(words))
