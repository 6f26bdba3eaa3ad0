"""A workload: one YAML document with classes of gangs that are submitted at a fixed pace.

```yaml
name: kueue
queues: 30
classes:
  small: {gangs: 350, every: 0.1, tasks: 1, units: 1, runs: 0.2, priority: 50}
```

Each queue submits so many `gangs` of each class, one `every` so many seconds; a gang has so many `tasks` of so many `units`
each, and runs for so many seconds once all its tasks run. What a unit is, is said when the workload is played.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final, NamedTuple

from corral.benchmarks.suite.document import read_document
from corral.kernel.errors import InvalidInput

_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,30}")
_MOST_GANGS: Final = 200_000
_MOST_CLASSES: Final = 20
_MOST_QUEUES: Final = 1000
_MOST_TASKS: Final = 1000
_LONGEST_SECONDS: Final = 86_400.0


class GangClass(NamedTuple):
    """Gangs that are alike."""

    name: str
    gangs: int
    """Of each queue."""
    every: float
    """Seconds between two of a queue."""
    tasks: int
    units: int
    """Of each task."""
    runs: float
    """Seconds."""
    priority: int


class Workload(NamedTuple):
    """What is submitted."""

    name: str
    queues: int
    classes: tuple[GangClass, ...]


class Arrival(NamedTuple):
    """A gang to be submitted."""

    at: float
    """Seconds after the first."""
    queue: int
    """From 0."""
    number: int
    """Within its class and queue, from 0."""
    kind: GangClass


def read_workload(text: bytes) -> Workload:
    """Read a workload file. Raises InvalidInput with the path of the fault."""
    document = read_document(text, "workload")
    _known(document, {"name", "queues", "classes"}, "")
    name = document.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _fault("name", "must be a word of lower-case letters, digits and hyphens")
    listed = document.get("classes")
    if not isinstance(listed, dict) or not 0 < len(listed) <= _MOST_CLASSES:
        raise _fault("classes", f"must be a mapping of 1 to {_MOST_CLASSES} classes")
    queues = _whole(document.get("queues", 1), 1, _MOST_QUEUES, "queues")
    workload = Workload(name, queues, tuple(_class(each, given) for each, given in listed.items()))
    gangs = sum(kind.gangs for kind in workload.classes) * queues
    if gangs > _MOST_GANGS:
        raise _fault("classes", f"have {gangs} gangs in all queues; at most {_MOST_GANGS} are played")
    return workload


def _class(name: Any, given: Any) -> GangClass:
    path = f"classes.{name}"
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _fault(path, "is no word of lower-case letters, digits and hyphens")
    if not isinstance(given, dict):
        raise _fault(path, "must be a mapping")
    _known(given, {"gangs", "every", "tasks", "units", "runs", "priority"}, f"{path}.")
    for key in ("gangs", "runs"):
        if key not in given:
            raise _fault(f"{path}.{key}", "is missing")
    return GangClass(
        name,
        _whole(given["gangs"], 1, _MOST_GANGS, f"{path}.gangs"),
        _seconds(given.get("every", 0), 0.0, f"{path}.every"),
        _whole(given.get("tasks", 1), 1, _MOST_TASKS, f"{path}.tasks"),
        _whole(given.get("units", 1), 1, 1_000_000, f"{path}.units"),
        _seconds(given["runs"], 0.001, f"{path}.runs"),
        _whole(given.get("priority", 0), -1_000_000, 1_000_000, f"{path}.priority"),
    )


def scaled(workload: Workload, part: float) -> Workload:
    """Return a workload with this part of its gangs in each queue and class, at least one of each."""
    classes = (kind._replace(gangs=max(1, round(kind.gangs * part))) for kind in workload.classes)
    return workload._replace(classes=tuple(classes))


def arrivals(workload: Workload) -> list[Arrival]:
    """Return all gangs in the order in which they are submitted; at one time, by queue and class."""
    found = [
        Arrival(number * kind.every, queue, number, kind)
        for queue in range(workload.queues)
        for kind in workload.classes
        for number in range(kind.gangs)
    ]
    return sorted(found, key=lambda each: each.at)


def _known(given: dict[Any, Any], keys: set[str], path: str) -> None:
    for key in given:
        if key not in keys:
            raise _fault(f"{path}{key}", "is not known here")


def _whole(value: Any, least: int, most: int, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise _fault(path, f"must be a whole number from {least} to {most}")
    return value


def _seconds(value: Any, least: float, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _fault(path, "must be a number of seconds")
    if not least <= value <= _LONGEST_SECONDS:
        raise _fault(path, f"must be {least:g} to {_LONGEST_SECONDS:g} seconds")
    return float(value)


def _fault(path: str, what: str) -> InvalidInput:
    return InvalidInput("bad-workload", f"{path[:200]} {what}.")
