"""Draw queues as bars and cells as a tree, for terminals with or without colours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, cast

from corral.cli.output import paint

if TYPE_CHECKING:
    from corral.client.schema import CellDevice, CellState, DeviceUse

_WIDTH: Final = 24
_MARKS: Final = {
    "guaranteed": ("●", "green"),
    "used": ("●", "blue"),
    "guest": ("◐", "yellow"),
    "leaving": ("◌", "magenta"),
    "free": ("○", ""),
    "unhealthy": ("✘", "red"),
    "closed": ("–", "bright_black"),
}
_FEW_QUEUES: Final = 4


def queue_bar(used: float, borrowed: float, owns: float, limit: float | None, scale: float) -> str:
    """Return a bar: used within the queue's own (█), borrowed (▓), idle own (░), and the rest up to its limit (·)."""
    if not scale:
        return ""
    own_used = max(0.0, used - borrowed)
    idle = max(0.0, owns - own_used)
    parts = [own_used, borrowed, idle, max(0.0, (limit or 0) - used - idle)]
    bar, begun, drawn = "", 0.0, 0
    for part, mark, colour in zip(parts, "█▓░·", ("green", "yellow", "", "bright_black"), strict=True):
        begun += part
        width = max(round(_WIDTH * begun / scale) - drawn, 1 if part else 0)
        width = min(width, _WIDTH - drawn)
        bar += paint(mark * width, colour)
        drawn += width
    return bar + " " * (_WIDTH - drawn)


def legend() -> str:
    """Return the legend of the device marks."""
    words = (
        ("guaranteed", "guaranteed"),
        ("guest", "guest"),
        ("leaving", "leaving"),
        ("free", "free"),
        ("unhealthy", "unhealthy"),
        ("closed", "closed"),
    )
    return "   ".join(f"{_MARKS[mark][0]} {word}" for mark, word in words)


def cell_tree(cell: CellState) -> Iterator[str]:
    """Yield a cell and its contents, one line each; a node below the top is one line with a mark per device."""
    yield _said(cell)
    if cell["holds"] or (_devices(cell) and cell["level"] not in _WIDE):
        yield from _branches(cell, each_device=True)
    else:
        yield from _branches(cell, each_device=False)


_WIDE: Final = frozenset({"root", "engine", "block", "rack"})


def _branches(cell: CellState, *, each_device: bool, prefix: str = "") -> Iterator[str]:
    parts: list[CellState | CellDevice] = [*cell["cells"], *(cell["holds"] if each_device else ())]
    hidden = cell["inside"] - len(cell["cells"]) - len(cell["holds"])
    hint = cell["cells"] and hidden > 0
    for at, part in enumerate(parts):
        last = at == len(parts) - 1 and not hint
        fork, below = ("└─ ", "   ") if last else ("├─ ", "│  ")
        if "index" in part:
            yield prefix + paint(fork, dim=True) + _device(cast("CellDevice", part))
            continue
        leaf = not each_device and part["level"] == "node"
        yield prefix + paint(fork, dim=True) + _said(part) + (f"  {_strip(part)}" if leaf else "")
        if not leaf:
            yield from _branches(part, each_device=each_device, prefix=prefix + paint(below, dim=True))
    if hint:
        yield prefix + paint("└─ ", dim=True) + f"… {hidden} more: corral cells '{cell['id']}'"


def _said(cell: CellState) -> str:
    """Return a cell's name, owner, users and problems as text."""
    words = [paint(cell["level"], dim=True) + " " + paint(cell["name"], bold=True)]
    if cell["level"] == "root":
        words = [paint(cell["name"], bold=True)]
    words.append(f"{cell['used']}/{cell['devices']} used")
    if cell["owner"]:
        words.append(paint(f"{'pinned to' if cell['pinned'] else 'bound to'} {cell['owner']}", "cyan"))
    elif cell["owners"]:
        words.append(paint("bound: " + _amounts(cell["owners"]), "cyan"))
    if cell["queues"]:
        words.append("by " + _amounts(cell["queues"]))
    for count, word, colour in (
        (cell["guests"], "as guests", "yellow"),
        (cell["leaving"], "leaving", "magenta"),
        (cell["unhealthy"], "unhealthy", "red"),
    ):
        if count:
            words.append(paint(f"{count} {word}", colour))
    if cell["state"]:
        words.append(paint(f"{cell['state']}: {cell['reason']}" if cell["reason"] else cell["state"], "red"))
    elif cell["closed"]:
        words.append(paint(f"{cell['closed']} closed", "red"))
    return "  ".join(words)


def _amounts(amounts: Mapping[str, float]) -> str:
    most = sorted(amounts.items(), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(f"{name} {count}" for name, count in most[:_FEW_QUEUES])
    return shown + (f" and {len(most) - _FEW_QUEUES} more" if len(most) > _FEW_QUEUES else "")


def _devices(cell: CellState) -> list[CellDevice]:
    return [*cell["holds"], *(device for inner in cell["cells"] for device in _devices(inner))]


def _strip(cell: CellState) -> str:
    """Return a mark for each device, with a space between the cells of the node."""
    if cell["cells"]:
        return " ".join(filter(None, (_strip(inner) for inner in cell["cells"])))
    return "".join(paint(*_mark(device)) for device in cell["holds"])


def _mark(device: CellDevice) -> tuple[str, str]:
    state: str = device["state"]
    if state == "used":
        standings = [use["standing"] for use in device["uses"]]
        state = "guest" if "guest" in standings else "guaranteed" if "guaranteed" in standings else "used"
    return _MARKS[state]


def _device(device: CellDevice) -> str:
    mark, colour = _mark(device)
    words = [f"{paint(mark, colour)} device {device['index']}", device["model"] or device["kind"]]
    words += [_use(use) for use in device["uses"]] or [device["state"]]
    if device["reason"]:
        words.append(paint(device["reason"], "red"))
    return "  ".join(words)


def _use(use: DeviceUse) -> str:
    part = f" {use['share']}%" if use["share"] != 100 else ""
    about = [use["user"], use["queue"], use["standing"], "leaving" if use["leaving"] else ""]
    return f"{use['name']} {use['role']}-{use['index']}{part} ({', '.join(filter(None, about))})"
