"""Write the small part of SVG that the documentation's pictures need, as text that can be compared.

A picture has its own background and both colour schemes, so it is readable wherever it is shown.
"""

from __future__ import annotations

from html import escape

STYLE = """
text{font:12px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#1f2328}
.small{font-size:10.5px}.dim{fill:#59636e}.head{font-weight:600}.mid{text-anchor:middle}.end{text-anchor:end}
.card{fill:#fff;stroke:#d0d7de}.cell{fill:#f6f8fa;stroke:#d0d7de}.node{fill:#fff;stroke:#afb8c1}
.free{fill:none;stroke:#8c959f;stroke-dasharray:1 2}.rule{stroke:#d0d7de}.mark{stroke:#1f2328;stroke-width:3}
.tip{fill:#1f2328}.stripe{stroke:#fff;stroke-width:3;opacity:.6}
.q0{fill:#a8ceff;stroke:#0969da}.q1{fill:#ffcfa3;stroke:#bc4c00}.q2{fill:#b1e5ba;stroke:#1a7f37}.q3{fill:#dcc6ff;stroke:#8250df}
.qn{fill:#e4e8ec;stroke:#59636e}.tick{stroke:#1f2328;opacity:.35}
.leaves{stroke-width:2.5;stroke-dasharray:4 3}.idle{fill:none!important;stroke-dasharray:4 3}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.dim{fill:#9198a1}
.card{fill:#0d1117;stroke:#3d444d}.cell{fill:#151b23;stroke:#3d444d}.node{fill:#0d1117;stroke:#656c76}
.free{fill:none;stroke:#7d8590}.rule{stroke:#3d444d}.mark{stroke:#e6edf3}.tip{fill:#e6edf3}.stripe{stroke:#0d1117;opacity:.5}
.q0{fill:#1b4b91;stroke:#58a6ff}.q1{fill:#7a3d0f;stroke:#f0883e}.q2{fill:#1c5c2e;stroke:#56d364}.q3{fill:#553098;stroke:#bc8cff}
.qn{fill:#2f3742;stroke:#9198a1}.tick{stroke:#e6edf3;opacity:.45}
}
"""
COLOURS = 4
"""The number of colours `qN`; `qn` is not one of them."""
MARGIN = 16.0


class Drawing:
    """A picture that grows; coordinates are pixels from its top left."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.width = self.height = 0.0

    def rect(self, x: float, y: float, width: float, height: float, style: str, *, round_by: float = 3) -> None:
        """A box."""
        self._reach(x + width, y + height)
        self._parts.append(
            f'<rect class="{style}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round_by:g}"/>'
        )

    def striped(self, x: float, y: float, width: float, height: float, style: str) -> None:
        """A box with stripes."""
        self.rect(x, y, width, height, style)
        self._parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" fill="url(#stripes)"/>'
        )

    def line(self, x: float, y: float, to_x: float, to_y: float, style: str = "rule") -> None:
        """A line."""
        self._reach(max(x, to_x), max(y, to_y))
        self._parts.append(f'<line class="{style}" x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}"/>')

    def triangle(self, x: float, y: float) -> None:
        """A small triangle that points up to (x, y)."""
        self._reach(x + 5, y + 8)
        self._parts.append(f'<path class="tip" d="M{x:g} {y:g}l5 8h-10z"/>')

    def text(self, x: float, y: float, said: str, style: str = "") -> None:
        """Text with its base line at y; `mid` and `end` in the style set its anchor."""
        wide = len(said) * (5.7 if "small" in style else 6.6)
        self._reach(x + (0 if "end" in style else wide / 2 if "mid" in style else wide), y + 4)
        named = f' class="{style}"' if style else ""
        self._parts.append(f'<text{named} x="{x:g}" y="{y:g}">{escape(said)}</text>')

    def put(self, other: Drawing, x: float, y: float) -> None:
        """Another drawing inside this one."""
        self._reach(x + other.width, y + other.height)
        self._parts += [f'<g transform="translate({x:g} {y:g})">', *other._parts, "</g>"]

    def _reach(self, x: float, y: float) -> None:
        self.width, self.height = max(self.width, x), max(self.height, y)

    def document(self, title: str, told: str) -> str:
        """The picture as a file; `told` describes it in words."""
        width, height = round(self.width + 2 * MARGIN), round(self.height + 2 * MARGIN)
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                f'viewBox="0 0 {width} {height}" role="img" aria-labelledby="title told">',
                f'<title id="title">{escape(title)}</title>',
                f'<desc id="told">{escape(told)}</desc>',
                f"<style>{STYLE}</style>",
                '<defs><pattern id="stripes" width="7" height="7" patternUnits="userSpaceOnUse" '
                'patternTransform="rotate(45)"><line class="stripe" x1="0" y1="0" x2="0" y2="7"/></pattern></defs>',
                f'<rect class="card" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>',
                f'<g transform="translate({MARGIN:g} {MARGIN:g})">',
                *self._parts,
                "</g>",
                "</svg>",
                "",
            ]
        )
