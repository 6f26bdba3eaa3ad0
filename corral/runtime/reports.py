"""Watch what a task's program reports of its work, and tell the server.

The program calls `corral.report`, writes a JSON file, or prints lines that the job's pattern finds. The values are
sent when they have changed, `APART_SECONDS` after the previous report.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from corral.runtime.reporting import VARIABLE
from corral.runtime.server_report import ServerReport

if TYPE_CHECKING:
    import threading

    from corral.runtime.peers import Api
    from corral.runtime.plan import Plan

LOOK_SECONDS = 0.5
APART_SECONDS = 10.0
"""The least seconds between two reports; the server keeps only the latest anyway."""
ACTIVE_SECONDS = 240.0
"""Seconds after which `active` is sent again although it is the same, as the server believes it for ten minutes."""
_MOST = 1e15
_BOUNDS = {
    "step": (0.0, _MOST),
    "steps": (1e-9, _MOST),
    "progress": (0.0, 1.0),
    "throughput": (0.0, _MOST),
    "loss": (-1e300, 1e300),
    "gradient_noise": (0.0, _MOST),
    "batch_size": (0.0, _MOST),
    "active": (0.0, 1.0),
    "waited": (0.0, _MOST),
}
"""The least and the most of each value that a program may report, as the server takes them."""
_MOST_BYTES = 64 * 1024
_LONGEST_LINE = 4096
_MOST_READ = 1024 * 1024
_OWN = ".corral"
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
"""A pipe in place of the file is not waited for."""

Values = Mapping[str, float]


def numbers_of(found: Any) -> dict[str, float]:
    """The known values of a JSON object that are within their bounds; anything else in it is left out."""
    if not isinstance(found, dict):
        return {}
    numbers = {name: found[name] for name in _BOUNDS if isinstance(found.get(name), (int, float))}
    return {name: float(value) for name, value in numbers.items() if _BOUNDS[name][0] <= value <= _BOUNDS[name][1]}


class ReportFile:
    """The values in a JSON file that a program writes anew with each report."""

    def __init__(self, path: str, within: str = "") -> None:
        """Nothing is read yet; a file that is there already counts.

        Only a file within the folder `within` is read, wherever links lead; "" is any.
        """
        self.path, self._within = path, within
        self._seen: tuple[int, int, int] | None = None

    def look(self) -> Values:
        """The values, if the file has changed since the last call; none if it cannot be read, or is half written."""
        if self._within and not os.path.realpath(self.path).startswith(f"{os.path.realpath(self._within)}/"):
            return {}
        try:
            with open(os.open(self.path, _OPEN), "rb") as file:
                found = os.fstat(file.fileno())
                seen = (found.st_ino, found.st_mtime_ns, found.st_size)
                if seen == self._seen or found.st_size > _MOST_BYTES or not stat.S_ISREG(found.st_mode):
                    return {}
                values = numbers_of(json.loads(file.read(_MOST_BYTES)))
        except (OSError, ValueError, RecursionError):
            return {}
        self._seen = seen
        return values


class LogPattern:
    """The values in the lines of a log that a regular expression finds, by the names of its groups."""

    def __init__(self, path: str, pattern: str) -> None:
        """Lines that are there already count."""
        self._path, self._pattern = path, re.compile(pattern.encode())
        self._at = 0
        self._rest = b""

    def look(self) -> Values:
        """The last values in the complete lines since the last call."""
        try:
            with open(self._path, "rb") as file:
                if os.fstat(file.fileno()).st_size < self._at:  # it was cut
                    self._at = 0
                file.seek(self._at)
                data = file.read(_MOST_READ)
        except OSError:
            return {}
        self._at += len(data)
        *lines, rest = (self._rest + data).replace(b"\r", b"\n").split(b"\n")
        self._rest = rest[-_LONGEST_LINE:]
        values: dict[str, float] = {}
        for line in lines:
            if match := self._pattern.search(line[:_LONGEST_LINE]):
                values |= numbers_of({name: _number(text) for name, text in match.groupdict().items()})
        return values


def _number(text: bytes | None) -> float | None:
    try:
        return float(text or b"")
    except ValueError:
        return None


class Reports:
    """Sends the latest values to the server; call `look` repeatedly, with a monotonic time."""

    def __init__(self, api: Api, attempt: str, sources: list[Callable[[], Values]], steps: int = 0) -> None:
        """`steps` of the whole work, unless the program says so (0: not known)."""
        self._report = ServerReport(api, "/api/v3/runtime/progress", "the program's progress")
        self._attempt, self._sources = attempt, sources
        self._values: dict[str, float] = {"steps": float(steps)} if steps else {}
        self._changed_at: float | None = None
        self._repeated: float | None = None
        """When the values changed that were sent last and are to be sent once more: the server drops what comes soon after
        another report."""
        self._next = -math.inf
        self._sent_at = -math.inf
        self.first_step: Callable[[], None] | None = None
        """Called once, when a step is reported for the first time."""

    def look(self, now: float, *, last: bool = False) -> None:
        """Read the sources once, and report what has changed; `last` does not wait until the time for it has come."""
        for source in self._sources:
            found = source()
            if "step" in found and self.first_step is not None:
                self.first_step()
                self.first_step = None
            again = "active" in found and now >= self._sent_at + ACTIVE_SECONDS
            if again or any(self._values.get(name) != value for name, value in found.items()):
                self._values |= found
                self._changed_at = now
        changed = self._repeated if self._changed_at is None and not last else self._changed_at
        if changed is None or (now < self._next and not last):
            return
        self._next = now + APART_SECONDS
        body: dict[str, Any] = {_camel(name): value for name, value in self._values.items()}
        if self._report.send(body | {"attempt": self._attempt}, now - changed):
            self._repeated = changed if self._changed_at is not None else None
            self._changed_at, self._sent_at = None, now

    @property
    def over(self) -> bool:
        """Whether further looks are useless, because the server refused a report."""
        return self._report.over


def watch(reports: Reports, stop: threading.Event) -> None:
    """Look every `LOOK_SECONDS` until a report is refused or `stop` is set, and once more then."""
    while not reports.over and not stop.wait(LOOK_SECONDS):
        reports.look(time.monotonic())
    if not reports.over:
        reports.look(time.monotonic(), last=True)


def own_folder(plan: Plan) -> str:
    """The folder for the module `corral` and the file that it writes; the command's container has it at the same path."""
    return os.path.join((plan.report or {}).get("folder") or plan.work, _OWN, plan.attempt)


def offer(plan: Plan, env: dict[str, str]) -> dict[str, str]:
    """Write the module `corral` for the command, and return the variables by which it is found. Raises OSError."""
    folder = own_folder(plan)
    package = os.path.join(folder, "python", "corral")
    os.makedirs(package, exist_ok=True)
    source = os.path.join(package, "__init__.py")
    with open(source, "wb") as file:
        file.write(_source())
    before = env.get("PYTHONPATH", "")
    ours = os.path.dirname(package)
    return {"PYTHONPATH": f"{before}{os.pathsep}{ours}" if before else ours, VARIABLE: os.path.join(folder, "values")}


def withdraw(plan: Plan) -> None:
    """Remove what `offer` wrote."""
    shutil.rmtree(own_folder(plan), ignore_errors=True)
    with suppress(OSError):  # other tasks of the job may have theirs beside it
        os.rmdir(os.path.dirname(own_folder(plan)))


def sources_of(plan: Plan) -> list[Callable[[], Values]]:
    """What is watched for a task: the values that `corral.report` writes, the job's file, and its log."""
    source = plan.report or {}
    in_container = bool(plan.shared or plan.entry_file)
    ours = own_folder(plan)
    found: list[Callable[[], Values]] = [ReportFile(os.path.join(ours, "values"), ours if in_container else "").look]
    if name := source.get("file"):
        path = os.path.normpath(os.path.join(plan.directory or plan.work, name))
        if in_container and not path.startswith(f"{plan.work}/"):
            print(f"corral: the report file {path} is in the image, where it is not seen", file=sys.stderr, flush=True)
        else:
            found.append(ReportFile(path, plan.work if in_container else "").look)
    if source.get("pattern") and plan.log:
        logs = {plan.log, f"{plan.log.removesuffix('.stderr')}.stdout"} if plan.log.endswith(".stderr") else {plan.log}
        found += [LogPattern(log, source["pattern"]).look for log in sorted(logs)]
    return found


def _source() -> bytes:
    """The text of the module that programs import; in the zipapp it is read through its loader."""
    import pkgutil

    return pkgutil.get_data("corral.runtime", "reporting.py") or b""


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
