"""Why: control drives every engine through these seven calls, each idempotent by attempt id, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from corral.kernel.errors import CorralError
from corral.kernel.ids import AttemptId
from corral.model.inventory import Inventory
from corral.model.launch import EngineEvent, TaskLaunch
from corral.model.objects import DocumentChange, ObjectRef


class ExecSession(Protocol):
    """One interactive command inside a running task."""

    async def send(self, data: bytes) -> None:
        """Give `data` to the command's standard input."""
        ...

    async def resize(self, rows: int, columns: int) -> None:
        """Tell the command's terminal its size."""
        ...

    def output(self) -> AsyncIterator[bytes]:
        """What the command prints, until it ends."""
        ...

    async def exit_code(self) -> int:
        """Wait for the command's end; 128 + signal when one ended it."""
        ...

    async def close(self) -> None:
        """End the command if it still runs."""
        ...


class Engine(Protocol):
    """Where tasks really run. Every call may be repeated; a repeated call changes nothing more."""

    name: str

    async def open(self) -> None:
        """Adopt what still runs from before; after it `watch` reports every attempt that is not forgotten."""
        ...

    async def close(self) -> None:
        """Let go of everything without ending a task."""
        ...

    def attempts(self) -> frozenset[AttemptId]:
        """Every attempt that the engine knows and was not told to forget; complete once `open` has returned."""
        ...

    async def inventory(self) -> Inventory:
        """All nodes as seen now."""
        ...

    async def start(self, launch: TaskLaunch) -> None:
        """Start the attempt unless it was started before; `watch` reports `Started` or `Exited`.

        Raises Unavailable when it is unknown whether the start took effect: repeat the call.
        """
        ...

    async def stop(self, attempt: AttemptId, *, grace_seconds: float, signal: str = "TERM") -> None:
        """End the attempt: `signal`, and KILL after the grace; an attempt never started ends at once, for ever."""
        ...

    async def forget(self, attempts: Sequence[AttemptId]) -> None:
        """Control has written down the ends of these attempts: drop their records (never their logs)."""
        ...

    def watch(self) -> AsyncIterator[EngineEvent]:
        """What happens from now on, each `Started`/`Exited` repeated after a reopening until forgotten."""
        ...

    async def exec(self, attempt: AttemptId, argv: Sequence[str], *, tty: bool) -> ExecSession:
        """Run a command beside the task, in its environment and folder.

        Raises NotFound when the attempt is not running here.
        """
        ...

    async def connect(self, attempt: AttemptId, port: int) -> ExecSession:
        """A TCP connection to one of the ports that the task was given: what is sent is its input, what comes its output.

        Raises NotFound when the attempt is not running here, or has no such port.
        """
        ...


@runtime_checkable
class Listing(Protocol):
    """An engine whose machines and tasks are objects of a cluster, which administrators may look at as they are."""

    async def listed_objects(self, kind: str, namespace: str = "") -> bytes:
        """The cluster's own answer, as JSON: its `nodes`, or its `pods` (of one namespace, or of all).

        Raises the house's errors, Forbidden where Corral may not look.
        """
        ...


class Documents(Protocol):
    """Objects of a cluster that stand for jobs: followed, and written field by field. Kinds are named by their titles."""

    async def run(self) -> None:
        """Follow every kind until cancelled; no failure of the cluster ends it."""
        ...

    async def changes(self) -> list[DocumentChange]:
        """Wait for changes and take them: the latest state of each object, those that are gone included; one reader."""
        ...

    def listed(self, kind: str) -> Collection[str] | None:
        """The UIDs of every object of a kind, as last seen; None while no whole list was taken in."""
        ...

    async def whole(self, kind: str) -> Collection[str]:
        """Wait until a whole list of a kind was taken in; its UIDs."""
        ...

    def trouble(self, kind: str) -> CorralError | None:
        """Why a kind is not followed just now; None while it is."""
        ...

    def run_elsewhere(self, uids: Collection[str]) -> None:
        """Of these objects, and no others, the jobs hold places while their own controllers run them (`external`).

        Pods that they own are counted as those jobs' tasks, and not once more against their nodes.
        """
        ...

    async def definition(self, kind: str) -> Mapping[str, str] | None:
        """The annotations of a kind's definition; None when the cluster has none.

        Raises the house's errors, Forbidden where Corral may not look.
        """
        ...

    async def apply(
        self, ref: ObjectRef, fields: Mapping[str, Any], *, version: str, part: str = "", subresource: str = ""
    ) -> str:
        """Make exactly these fields Corral's own, whoever had them (server-side apply); the object's version then.

        Each `part` is owned by itself: what is left out of it is given up, and other parts stay. `version` is the one
        that the fields were made for.

        Raises NotFound when the object is gone, Conflict when it is another one or has another version by now,
        Unavailable `lease-over` when this server may write nothing any more.
        """
        ...

    async def merge(self, ref: ObjectRef, fields: Mapping[str, Any], *, version: str) -> str:
        """Merge fields into an object without owning them from then on against others; the object's version then.

        Raises like `apply`.
        """
        ...
