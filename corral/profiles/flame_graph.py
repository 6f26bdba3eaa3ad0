"""Draw a flame graph as an SVG file that needs no script: each frame has its name and share as a title."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import escape

from corral.profiles.folded import Node

_WIDTH: Final = 1200
_ROW: Final = 18
_LETTER: Final = 7
_NARROWEST: Final = 0.4
"""Pixels below which a frame is left out; what is drawn is bounded by this."""
_COLOURS: Final = ("#f2b179", "#f0c36d", "#e8a06a", "#f5d08f")


def flame_graph(root: Node, title: str, unit: str = "samples") -> str:
    """Return the SVG of a tree of stacks, with the outermost frame at the top; `unit` is what was counted."""
    rows = list(_frames(root, 0.0, _WIDTH / max(1, root.samples), 0))
    height = (max(depth for *_, depth in rows) + 3) * _ROW
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'font-family="monospace" font-size="12"><title>{escape(title)}</title>'
        f'<rect width="100%" height="100%" fill="#ffffff"/><text x="4" y="14" fill="#202020">{escape(title)}</text>'
    )
    return head + "".join(_drawn(*row, root.samples, unit) for row in rows) + "</svg>\n"


def _frames(node: Node, left: float, scale: float, depth: int) -> Iterator[tuple[Node, float, float, int]]:
    width = node.samples * scale
    if width < _NARROWEST and depth:
        return
    yield node, left, width, depth
    for each in node.below:
        yield from _frames(each, left, scale, depth + 1)
        left += each.samples * scale


def _drawn(node: Node, left: float, width: float, depth: int, samples: int, unit: str) -> str:
    top = (depth + 1) * _ROW + 4
    share = f"{node.samples / max(1, samples):.1%}"
    letters = int(width / _LETTER) - 1
    shown = node.name if len(node.name) <= letters else node.name[: max(0, letters - 1)] + "…"
    label = f'<text x="{left + 3:.1f}" y="{top + 13}" fill="#202020">{escape(shown)}</text>' if letters > 3 else ""
    colour = _COLOURS[sum(node.name.encode()) % len(_COLOURS)]
    box = f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_ROW - 1}" fill="{colour}" rx="2"/>'
    return f"<g><title>{escape(node.name)}: {share}, {node.samples} {unit}</title>{box}{label}</g>"
