"""The sentences of a job's events, in one place and in one style."""

from __future__ import annotations

from collections.abc import Sequence

from corral.model.exits import PREEMPTED, STOP_REQUESTED
from corral.model.framework_exits import classify_by
from corral.model.launch import Exited
from corral.model.outcome import Completion, ExitClass
from corral.model.placement import TaskPlacement
from corral.model.runs import TaskRun
from corral.runtime.error_block import sentence


def duration(seconds: float) -> str:
    """Format `seconds` for people: `15 s`, `1 min 30 s`, `2 h 5 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min" + (f" {rest} s" if rest else "")
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h" + (f" {minutes} min" if minutes else "")


def outcome(completion: Completion) -> str:
    """How something ended, as the rest of a sentence: `succeeded`, `failed with code 3 (…): …`."""
    if completion.succeeded:
        return "succeeded"
    if completion.code == STOP_REQUESTED:
        return f"was stopped: {completion.diagnostics}"
    if completion.code == PREEMPTED:
        return f"yields its devices: {completion.diagnostics}"
    because = f": {said}" if (said := sentence(completion.diagnostics)) else ""
    return f"failed with code {completion.code} ({completion.phrase}){because}"


def plain(diagnostics: str) -> str:
    """The diagnostics for people, without the error block."""
    return sentence(diagnostics)


def exited(task: TaskRun, event: Exited, table: str) -> str:
    """The sentence for an instance that was seen to end, in the terms of an exit table."""
    seen = classify_by(table, event.code)
    means = "" if seen.exit_class is ExitClass.SUCCEEDED else f" ({seen.phrase})"
    signal = f", signal {event.signal}" if event.signal else ""
    because = f": {said}" if (said := sentence(event.reason)) else ""
    return f"{task.key} exited with code {event.code}{means}{signal}{because}"


def never_ran(who: str, attempts: int, completion: Completion | None = None) -> str:
    """The sentence for a task or job whose consecutive attempts ended before they were seen running."""
    because = f": {said}" if completion is not None and (said := sentence(completion.diagnostics)) else ""
    return f"{who} has not run in {attempts} attempts{because}"


def placed(places: Sequence[TaskPlacement], notes: Sequence[str]) -> str:
    """The sentence for tasks that were placed."""
    nodes = sorted({place.node for place in places})
    shown = ", ".join(nodes[:5]) + (f" and {len(nodes) - 5} more nodes" if len(nodes) > 5 else "")
    tasks = "1 task was" if len(places) == 1 else f"{len(places)} tasks were"
    return f"{tasks} placed on {shown}" + "".join(f"; {note}" for note in notes)
