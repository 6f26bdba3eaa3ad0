"""Map topology level names to the levels that an engine has; a missing level becomes the next narrower one."""

from __future__ import annotations

from collections.abc import Sequence

LEVELS = ("root", "engine", "block", "rack", "node", "numa", "nvlink", "pcie-switch", "device")
"""The usual levels, widest first; the replacement for a level that an engine lacks is looked up in this order."""


def complete(levels: Sequence[str]) -> tuple[str, ...]:
    """Return an engine's levels from `engine` down to `device`, each once.

    If the engine did not list `node`, it is inserted above the levels known to lie inside a machine.
    """
    named = [level for level in dict.fromkeys(levels) if level not in ("root", "engine", "device")]
    if "node" not in named:
        inner = LEVELS[LEVELS.index("node") :]
        named.insert(next((i for i, level in enumerate(named) if level in inner), len(named)), "node")
    return ("engine", *named, "device")


def resolve(level: str, levels: Sequence[str], known: Sequence[Sequence[str]] = ()) -> int | None:
    """Return the index in `levels` of `level` or of the next narrower level present; None if the name is unknown.

    `known` are the levels of other engines, consulted for names that are not usual ones.
    """
    if not level:
        return 0
    if level in levels:
        return levels.index(level)
    for order in (LEVELS, *known):
        if level in order:
            lower = order[order.index(level) + 1 :]
            return next(levels.index(name) for name in (*lower, "device") if name in levels)
    return None
