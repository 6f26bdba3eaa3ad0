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
    kinds = {"stacks": places_text, "python": functions_text, "torch": traces_text, "memory": memory_text}
    kinds |= {"system": system_text, "jax": traces_text, "tensorflow": traces_text}
    return kinds[facts["what"]](facts)


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
    ranks = counted(len(facts["ranks"]), "rank")
    return f"{_functions(facts)}\n{facts['samples']} samples of {ranks}."


def _functions(facts: Mapping[str, Any]) -> str:
    rows = [
        (f"{each['own']:.0%}", f"{each['total']:.0%}", each["name"])
        for each in facts["functions"][:_SHOWN]
        if each["own"] > 0
    ]
    return table(("OWN", "TOTAL", "FUNCTION"), rows, right=frozenset({0, 1}))


def memory_text(facts: Mapping[str, Any]) -> str:
    """Who holds the memory of each rank, how it grew, and beneath which functions."""
    parts = []
    for rank, curves in zip(facts["memory"], facts["curves"], strict=True):
        used = f"{_size(rank['used'])} in use, {_size(rank['peak'])} at most since it began"
        grown = f"{_size(rank['grown'])} grew and {_size(rank['kept'])} stayed in {curves['seconds']:.0f} s"
        lines = [paint(rank["rank"], bold=True), f"{used}; {grown}.", *_lines(curves)]
        rows = [(_size(each["after"]), _change(each), each["name"]) for each in rank["holders"]]
        parts.append("\n".join([*lines, table(("IN USE", "CHANGE", "HELD BY"), rows, right=frozenset({0, 1}))]))
    if facts["samples"]:
        parts.append(f"{_functions(facts)}\nShares of the {_size(facts['samples'] * 1024)} that grew.")
    return "\n\n".join([*parts, *_advice(facts)])


def system_text(facts: Mapping[str, Any]) -> str:
    """What each task did with its machine over the time, and the advice."""
    parts = ["\n".join([paint(each["rank"], bold=True), *_lines(each)]) for each in facts["curves"]]
    names = {curve["name"] for each in facts["curves"] for curve in each["curves"]}
    note = [_NETWORK] if any(each.startswith("network ") for each in names) else []
    return "\n\n".join([*parts, *note, *(_advice(facts) or [_NO_ADVICE])])


_NETWORK: Final = (
    "The network figures are the whole node's where the task shares its network, as on the local engine, and else its "
    "pod's."
)
_NO_ADVICE: Final = "Nothing stands out, so there is no advice."
_MIB: Final = 2**20
_BARS: Final = "▁▂▃▄▅▆▇█"
_BAR_COLUMNS: Final = 60


def _size(bytes_: float) -> str:
    return f"{bytes_ / _MIB:,.1f} MiB"


def _change(holder: Mapping[str, Any]) -> str:
    return f"{(holder['after'] - holder['before']) / _MIB:+,.1f} MiB"


def _lines(curves: Mapping[str, Any]) -> list[str]:
    """The figures over time, one line each."""
    width = max((len(each["name"]) for each in curves["curves"]), default=0)
    return [f"{each['name']:{width}} {_bars(each)} {each['most']:,.1f} {each['unit']}" for each in curves["curves"]]


def _bars(curve: Mapping[str, Any]) -> str:
    """A curve from 0 to its greatest point, as block characters."""
    points = curve["points"]
    most, columns = max(points, default=0.0), min(_BAR_COLUMNS, len(points))
    picked = [points[at * len(points) // columns] for at in range(columns)]
    return "".join(_BARS[min(7, int(8 * each / most)) if most > 0 else 0] for each in picked)


_PARTS: Final = {
    "computing": "COMPUTING",
    "exposedCommunication": "COMMUNICATION",
    "copies": "COPIES",
    "dataWaits": "DATA",
    "idle": "REST",
}


_WORDS: Final = {
    "computing": "computing",
    "exposed_communication": "communication",
    "copies": "copies",
    "data_waits": "waits for data",
    "idle": "idle, or Python",
}


def traces_text(facts: Mapping[str, Any]) -> str:
    """How the ranks spent their time, what took most of it, and the advice."""
    rows = [
        (each["rank"], f"{each['seconds']:.2f}", *(_share(each, part) for part in _PARTS), each["steps"])
        for each in facts["reports"]
    ]
    right = frozenset(range(1, len(_PARTS) + 3))
    parts = [table(("RANK", "SECONDS", *_PARTS.values(), "STEPS"), rows, right=right)]
    if path := facts["path"][:_TOPS]:
        path_rows = [
            (f"{each['share']:.0%}", each["rank"], _WORDS[each["part"]], ", ".join(each["names"])) for each in path
        ]
        parts.append(table(("CRITICAL PATH", "RANK", "WHAT", "MOSTLY"), path_rows, right=frozenset({0})))
    for title, name in (("KERNEL", "kernels"), ("COLLECTIVE", "collectives"), ("OPERATOR", "operators")):
        if found := _together(facts["reports"], name)[:_TOPS]:
            counted_rows = [(f"{seconds:.3f}", calls, called) for called, seconds, calls in found]
            parts.append(table(("SECONDS", "CALLS", title), counted_rows, right=frozenset({0, 1})))
    return "\n\n".join([*parts, *(_advice(facts) or [_NO_ADVICE])])


def _advice(facts: Mapping[str, Any]) -> list[str]:
    """The advice as one part of a text; none if there is none."""
    lines = [
        f"{number}. {each['text']} Gain: up to {each['gain']:.0%}{' of its memory' if each['of'] == 'memory' else ''}."
        for number, each in enumerate(facts["advice"], 1)
    ]
    return ["\n".join(lines)] if lines else []


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
