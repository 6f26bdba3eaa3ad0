"""Profiles as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from corral.cli.output import paint, table
from corral.kernel.units import counted

_SHOWN: Final = 15
_RANKS: Final = 8


def places_text(facts: Mapping[str, Any]) -> str:
    """Where each rank stands; the places of the fewest ranks come first."""
    return "\n\n".join("\n".join(_place(each)) for each in facts["places"])


def _place(place: Mapping[str, Any]) -> list[str]:
    ranks = place["ranks"]
    more = f" and {len(ranks) - _RANKS} more" if len(ranks) > _RANKS else ""
    state = "running" if place["active"] else "waiting"
    head = f"{', '.join(ranks[:_RANKS])}{more}: thread {place['thread']} ({state})"
    return [paint(head, bold=True), *(f"    {frame}" for frame in place["frames"])]


def functions_text(facts: Mapping[str, Any]) -> str:
    """The functions with the most samples of their own."""
    rows = [
        (f"{each['own']:.0%}", f"{each['total']:.0%}", each["name"])
        for each in facts["functions"][:_SHOWN]
        if each["own"] > 0
    ]
    heads = ("OWN", "TOTAL", "FUNCTION")
    ranks = counted(len(facts["ranks"]), "rank")
    return f"{table(heads, rows, right=frozenset({0, 1}))}\n{facts['samples']} samples of {ranks}."
