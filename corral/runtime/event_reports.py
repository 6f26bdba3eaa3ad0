"""Follow the event files that a task writes for TensorBoard, and tell the server their scalars.

The task reads its own files, so that folders of its machine, of its pod and of a mounted storage are read with the
rights of the task, and remote folders with its credentials.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from corral.runtime.event_folder import Allowance, EventFolder, Point
from corral.runtime.event_scalars import LONGEST_NAME
from corral.runtime.server_report import ServerReport

if TYPE_CHECKING:
    import threading

    from corral.runtime.peers import Api
    from corral.runtime.plan import Plan

LOOK_SECONDS = 15.0
STEP_SECONDS = 15
"""Of the values of a curve within so many seconds the last one is told."""
OLDEST_SECONDS = 600.0
"""Older values are not told, as the server keeps none."""
AHEAD_SECONDS = 60.0
"""Seconds by which the time of a value may be ahead; values of a later time are not told."""
SHARE = 0.02
"""The part of a core that looks may take: the pause after one is longer where it cost more."""
MOST_TOLD = 1000
"""Values in one call."""
MOST_VALUE = 1e308
"""Values beyond it, or below its negative, are not told: the server takes none."""
LONGEST_RUN = 250
"""Characters of the name of a folder with that of a run below it, as the server takes them."""
_MOST_WAITING = 5000
"""Values that wait for the server; of more, the oldest are dropped."""
_MOST_BYTES = 4 * 2**20
_MOST_EVENTS = 10_000
"""What is read and decoded in one look, of all folders."""


class Source(Protocol):
    """What is looked at for event files."""

    @property
    def left_out(self) -> int:
        """Scalars that were left out since their tag is one too many."""
        ...

    def look(self, since: float, allowance: Allowance) -> list[Point]:
        """Return the scalars that were written at a time after `since`, as far as it may read."""
        ...

    def broken(self) -> list[str]:
        """What is wrong with files of which nothing more is read."""
        ...


@runtime_checkable
class RemoteSource(Source, Protocol):
    """One that copies what it reads."""

    trouble: str
    """What was wrong with the last copy; "" is nothing."""
    full: str
    """What is said where nothing more is copied; "" is nothing."""

    def hurry(self) -> None:
        """Have the next look copy, whatever the time."""
        ...

    def close(self) -> None:
        """Remove the copies."""
        ...


class NamedSource(NamedTuple):
    """A folder with the name that its curves have; "" is the working folder."""

    name: str
    source: Source


class _Told(NamedTuple):
    at: float
    value: float


class EventReports:
    """Tells the last values of all curves; call `look` repeatedly."""

    def __init__(
        self, api: Api, attempt: str, sources: Sequence[NamedSource], now: Callable[[], float] = time.time
    ) -> None:
        """`now` is the clock by which the files were written."""
        self._report = ServerReport(api, "/api/v3/runtime/scalars", "scalars of event files")
        self._attempt, self._sources, self._now = attempt, _with_names_that_fit(sources), now
        self._waiting: dict[tuple[int, str, str], _Told] = {}
        self._said: set[tuple[str, str]] = set()
        """Folders with the kinds of trouble that were said of them."""
        self.pause = LOOK_SECONDS
        """Seconds between the last look and the next."""

    @property
    def over(self) -> bool:
        """Whether further looks are useless, because the server refused a report."""
        return self._report.over

    def look(self) -> None:
        """Read what has come, and tell it."""
        begun, now = time.thread_time(), self._now()
        allowance = Allowance(_MOST_BYTES, _MOST_EVENTS)
        for each in list(self._sources):
            if allowance.over:
                break
            self._sources.append(self._sources.pop(0))  # those that are not reached are first in the next look
            points = each.source.look(now - OLDEST_SECONDS, allowance)
            self._take(each.name, points, now)
            self._complain(each)
        self._tell(now)
        self.pause = max(LOOK_SECONDS, (time.thread_time() - begun) / SHARE)

    def last_look(self) -> None:
        """Read and tell what has come, also what is remote."""
        for each in self._sources:
            if isinstance(each.source, RemoteSource):
                each.source.hurry()
        self.look()

    def close(self) -> None:
        """Remove copies of what is remote."""
        for each in self._sources:
            if isinstance(each.source, RemoteSource):
                each.source.close()

    def _take(self, name: str, points: Iterable[Point], now: float) -> None:
        for run, scalar in points:
            if scalar.at <= now + AHEAD_SECONDS and abs(scalar.value) <= MOST_VALUE:
                key = int(scalar.at // STEP_SECONDS), "/".join(filter(None, (name, run))), scalar.tag
                self._waiting.pop(key, None)
                self._waiting[key] = _Told(scalar.at, scalar.value)
        while len(self._waiting) > _MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]

    def _tell(self, now: float) -> None:
        old = [key for key, told in self._waiting.items() if told.at <= now - OLDEST_SECONDS]
        for key in old:
            del self._waiting[key]
        while self._waiting and not self.over:
            keys = list(self._waiting)[:MOST_TOLD]
            scalars = [
                {"run": run, "tag": tag, "ageSeconds": max(-AHEAD_SECONDS, now - told.at), "value": told.value}
                for _, run, tag, told in ((*key, self._waiting[key]) for key in keys)
            ]
            body = {"attempt": self._attempt, "scalars": scalars}
            if not self._report.send(body, max(0.0, self._now() - now)) and not self._report.not_taken:
                return  # the next look tells them
            for key in keys:
                del self._waiting[key]

    def _complain(self, each: NamedSource) -> None:
        """Say once of a folder what is wrong with it, each kind of trouble by itself."""
        found: dict[str, str] = {}
        if isinstance(each.source, RemoteSource):
            found |= {"copies": each.source.trouble, "full": each.source.full}
        whole = f"the event files in {each.name or 'the working folder'} are not read as a whole"
        if broken := each.source.broken():
            found["broken"] = f"{whole}: a file is broken: {broken[0]}."
        if each.source.left_out:
            found["curves"] = f"{whole}: too many curves; the further ones are left out."
        for kind, sentence in found.items():
            if sentence and (each.name, kind) not in self._said:
                self._said.add((each.name, kind))
                print(f"corral: {sentence}", file=sys.stderr, flush=True)


def _with_names_that_fit(sources: Iterable[NamedSource]) -> list[NamedSource]:
    """The folders under names that the server takes; it is said which have other ones."""
    found: list[NamedSource] = []
    longest = LONGEST_RUN - LONGEST_NAME - 1
    for each in sources:
        name = "".join(letter if letter.isprintable() else "?" for letter in each.name)
        if len(name) > longest:
            name = f"…{name[2 - longest :]}"
        if name != each.name:
            known = {other.name for other in found}
            name = next(free for free in (name, *(f"{number}{name}" for number in range(2, 100))) if free not in known)
            what = f"the curves of a folder of event files are called {name}, since names are short and printable."
            print(f"corral: {what}", file=sys.stderr, flush=True)
        found.append(NamedSource(name, each.source))
    return found


def watch(reports: EventReports, stop: threading.Event) -> None:
    """Look until a report is refused or `stop` is set, and once more then."""
    while not reports.over and not stop.wait(reports.pause):
        reports.look()
    if not reports.over:
        reports.last_look()
    reports.close()


def sources_of(plan: Plan, env: Mapping[str, str] | None = None) -> list[NamedSource]:
    """The folders that are looked at for a task: its working folder, unless the server reads it, and those it names.

    `env` are the variables of the command. Folders that are not seen are left out: `unseen` says them.
    """
    given: dict[str, Any] = plan.report or {}
    elsewhere, here = _elsewhere(plan), _here(plan)
    found: list[NamedSource] = []
    if given.get("own_events"):
        found.append(NamedSource("", EventFolder(here)))
    for number, name in enumerate(given.get("tensorboard", ())):
        if "://" in name:
            if remote := _remote(plan, name, env):
                found.append(NamedSource(name.partition("://")[2].strip("/"), remote))
        elif (path := elsewhere.get(number)) is None:
            continue  # it is looked at as a part of the working folder
        elif not _in_container(plan):
            found.append(NamedSource("" if path == _directory(plan) else name.strip("/"), EventFolder(path)))
        elif mounted := _mounted(plan, number):
            # the folder of a mount belongs to the task, which may have other rights than this sidecar
            shown = "" if path == _directory(plan) else name.strip("/")
            found.append(NamedSource(shown, EventFolder(mounted, path, everybody=os.geteuid() == 0)))
    return found


def unseen(plan: Plan) -> list[str]:
    """What to say of the folders that a job names and that are not seen from beside its container."""
    paths = [path for number, path in _elsewhere(plan).items() if _in_container(plan) and not _mounted(plan, number)]
    return [f"the event files in {path} are in the image, where they are not seen" for path in paths]


def _elsewhere(plan: Plan) -> dict[int, str]:
    """The folders of the task that a job names, by number, unless they are within the working folder."""
    given, work, found = plan.report or {}, os.path.realpath(plan.work), dict[int, str]()
    for number, name in enumerate(given.get("tensorboard", ())):
        path = os.path.normpath(os.path.join(_directory(plan), name))
        own = given.get("own_events") and _is_inside(path, os.path.realpath(_here(plan)))
        # a sidecar has no working folder that is on a mount of the task's, or in its image
        here = _is_inside(path, work) and (given.get("own_events") or not plan.shared)
        if "://" not in name and not here and not own:
            found[number] = path
    return found


def _in_container(plan: Plan) -> bool:
    """Whether the command has other file systems than the runtime."""
    return bool(plan.shared or plan.entry_file)


def _directory(plan: Plan) -> str:
    return plan.directory or plan.work


def _here(plan: Plan) -> str:
    """The working folder."""
    inside = _in_container(plan) or _is_inside(_directory(plan), os.path.realpath(plan.work))
    return plan.work if inside else _directory(plan)


def _mounted(plan: Plan, number: int) -> str:
    """Where the mount of the task is that has a folder of the job, "" where there is none."""
    mounts = (plan.report or {}).get("mounts")
    place = f"{mounts}/{number}"
    return place if mounts and os.path.isdir(place) else ""


def _remote(plan: Plan, uri: str, env: Mapping[str, str] | None) -> RemoteSource | None:
    """A folder at a URI, with the copies among the runtime's files for the task; None if it cannot be read."""
    from corral.runtime.remote_events import RemoteEvents  # most tasks read no remote folder
    from corral.runtime.reports import own_folder

    if not plan.stage_command:
        print(f"corral: the event files at {uri} cannot be read by this task's runtime", file=sys.stderr, flush=True)
        return None
    try:
        return RemoteEvents(plan.stage_command, uri, OLDEST_SECONDS, own_folder(plan), _variables(plan, env))
    except OSError as error:
        what = f"the event files at {uri} are not read, as no folder for copies can be made: {error.strerror}."
        print(f"corral: {what}", file=sys.stderr, flush=True)
        return None


def _variables(plan: Plan, env: Mapping[str, str] | None) -> dict[str, str] | None:
    """The variables of the command for a program that has the task's rights; None where it begins with others'."""
    if env is None or plan.entry_file or plan.shared or plan.owner >= 0:
        return None
    found = {name: value for name, value in env.items() if name != "PYTHONPATH"}  # it has another module `corral`
    return found | ({"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {})


def _is_inside(path: str, folder: str) -> bool:
    real = os.path.realpath(path)
    return real == folder or real.startswith(f"{folder}/")
