"""Profiles as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from corral.cli.output import paint, table
from corral.kernel.units import counted

_SHOWN: Final = 15
_RANKS: Final = 8
_TOPS: Final = 5


def text_of(facts: Mapping[str, Any]) -> str:
    """A profile of any kind."""
    return {"stacks": places_text, "python": functions_text, "torch": traces_text}[facts["what"]](facts)


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


_PARTS: Final = {
    "computing": "COMPUTING",
    "exposedCommunication": "COMMUNICATION",
    "copies": "COPIES",
    "dataWaits": "DATA",
    "idle": "REST",
}


def traces_text(facts: Mapping[str, Any]) -> str:
    """How the ranks spent their time, what took most of it, and the advice."""
    rows = [
        (each["rank"], f"{each['seconds']:.2f}", *(_share(each, part) for part in _PARTS), each["steps"])
        for each in facts["reports"]
    ]
    right = frozenset(range(1, len(_PARTS) + 3))
    parts = [table(("RANK", "SECONDS", *_PARTS.values(), "STEPS"), rows, right=right)]
    for title, name in (("KERNEL", "kernels"), ("COLLECTIVE", "collectives"), ("OPERATOR", "operators")):
        if found := _together(facts["reports"], name)[:_TOPS]:
            counted_rows = [(f"{seconds:.3f}", calls, called) for called, seconds, calls in found]
            parts.append(table(("SECONDS", "CALLS", title), counted_rows, right=frozenset({0, 1})))
    advice = [
        f"{number}. {each['text']} Gain: up to {each['gain']:.0%}." for number, each in enumerate(facts["advice"], 1)
    ]
    return "\n\n".join([*parts, "\n".join(advice) or "Nothing stands out, so there is no advice."])


def _share(rank: Mapping[str, Any], part: str) -> str:
    return f"{rank[part] / rank['seconds']:.0%}" if rank["seconds"] else ""


def _together(reports: Sequence[Mapping[str, Any]], name: str) -> list[tuple[str, float, int]]:
    """The operators or kernels of all ranks, the longest first."""
    sums: dict[str, tuple[float, int]] = {}
    for rank in reports:
        for each in rank[name]:
            seconds, calls = sums.get(each["name"], (0.0, 0))
            sums[each["name"]] = (seconds + each["seconds"], calls + each["calls"])
    return sorted(((called, *figures) for called, figures in sums.items()), key=lambda each: (-each[1], each[0]))


def comparison_text(found: Mapping[str, Any]) -> str:
    """Two profiles beside each other."""
    rows = [
        (
            f"{each['before']:.0%}",
            f"{each['after']:.0%}",
            f"{each['after'] - each['before']:+.0%}",
            each["name"],
        )
        for each in found["differences"][:_SHOWN]
    ]
    return table(("BEFORE", "AFTER", "CHANGE", "OF THE TIME"), rows, right=frozenset({0, 1, 2}))
