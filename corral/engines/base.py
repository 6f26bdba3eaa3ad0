"""Why: control drives every engine through these seven calls, each idempotent by attempt id, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from corral.kernel.ids import AttemptId
from corral.model.inventory import Inventory
from corral.model.launch import EngineEvent, TaskLaunch


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
