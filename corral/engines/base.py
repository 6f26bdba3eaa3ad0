"""The engine protocol: the calls by which control drives every engine. Each is idempotent per attempt id."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from corral.kernel.errors import CorralError
from corral.kernel.ids import AttemptId, JobId
from corral.model.cluster_use import ClusterUse
from corral.model.inventory import Inventory
from corral.model.kubernetes_objects import DocumentChange, ObjectRef
from corral.model.launch import EngineEvent, TaskLaunch

OF_API: Final = "api"
OF_REGISTRY: Final = "registry"
"""Whose certificates a cluster shows: its API, and the registry of its own."""


class ExecSession(Protocol):
    """One interactive command inside a running task."""

    async def send(self, data: bytes) -> None:
        """Write `data` to the command's standard input."""
        ...

    async def resize(self, rows: int, columns: int) -> None:
        """Set the size of the command's terminal."""
        ...

    def output(self) -> AsyncIterator[bytes]:
        """Yield the command's output until it ends.

        Raises Unavailable where nothing listens at the port of a connection.
        """
        ...

    async def exit_code(self) -> int:
        """Wait for the command to end and return its exit code: 128 + signal if a signal ended it."""
        ...

    async def close(self) -> None:
        """End the command if it still runs."""
        ...


class Engine(Protocol):
    """Runs tasks on machines. Repeating a call has no further effect."""

    name: str

    async def open(self) -> None:
        """Adopt attempts that still run. Afterwards `watch` reports every attempt that was not forgotten."""
        ...

    async def close(self) -> None:
        """Release all resources without ending a task."""
        ...

    def attempts(self) -> frozenset[AttemptId]:
        """Return every attempt that the engine knows and has not forgotten; complete once `open` has returned."""
        ...

    async def inventory(self) -> Inventory:
        """Return the current state of all nodes."""
        ...

    async def start(self, launch: TaskLaunch) -> None:
        """Start the attempt unless it was started before. `watch` reports `Started` or `Exited`.

        `launch.gang` has the size and the places of its whole job, as a hint.

        Raises Unavailable when it is unknown whether the start took effect: repeat the call.
        """
        ...

    async def stop(self, attempt: AttemptId, *, grace_seconds: float, signal: str = "TERM") -> None:
        """End the attempt: send `signal`, then KILL after the grace.

        One never started ends at once and cannot start.
        """
        ...

    async def forget(self, attempts: Sequence[AttemptId]) -> None:
        """Drop the records of these attempts, whose ends control has stored. Logs are kept."""
        ...

    def watch(self) -> AsyncIterator[EngineEvent]:
        """Yield events from now on.

        After `open`, `Started` and `Exited` are repeated until the attempt is forgotten.
        """
        ...

    async def exec(self, attempt: AttemptId, argv: Sequence[str], *, tty: bool) -> ExecSession:
        """Run a command beside the task, in its environment and folder.

        Raises NotFound when the attempt is not running here.
        """
        ...

    async def connect(self, attempt: AttemptId, port: int) -> ExecSession:
        """Open a TCP connection to one of the task's ports: `send` writes to it, `output` reads from it.

        Raises NotFound when the attempt is not running here, or has no such port.
        """
        ...


@runtime_checkable
class JobHints(Protocol):
    """An engine that keeps something for whole jobs, such as containers that run one task after another.

    Control says here which jobs need it no more. Both calls return at once; what follows from them is the engine's own
    work, which it repeats until it is done. `TaskLaunch.gang` tells such an engine how much a job needs.
    """

    def job_over(self, job: JobId) -> None:
        """Note that a job is over, and the end of each of its tasks is stored.

        A job that never ran here may be named, too. The same job may be started again later, if a user restarts it.
        """
        ...

    def live_jobs(self, jobs: frozenset[JobId]) -> None:
        """Note all jobs that are not over: whatever is kept for another job is of no more use.

        Called after `open`, before the first call about a task, and whenever control has read everything again: so no
        `job_over` is missed for good that a crash swallowed.
        """
        ...


@runtime_checkable
class PendingStarts(Protocol):
    """An engine that keeps a start that it answered with Unavailable, and may carry it out before the call is repeated."""

    def withdraw(self, attempt: AttemptId) -> bool:
        """Give up a start that has not taken effect. Returns whether it never will; False for one that has."""
        ...


@runtime_checkable
class TaskFolders(Protocol):
    """An engine whose tasks have working folders on the server's machine."""

    folders: WorkFolders


class AgentAddress(NamedTuple):
    """Where the agent of a node listens."""

    node: str
    """The node's name without the engine's."""
    host: str
    port: int


class NodeAgentsOf(Protocol):
    """The agents that an engine runs on its nodes."""

    wanted: bool
    """Whether the engine runs any."""

    def token_of(self, node: str) -> str:
        """Return the token by which the agent of a node knows this server."""
        ...

    def addresses(self) -> tuple[AgentAddress, ...]:
        """Return where they listen now; nothing where the engine runs none."""
        ...


@runtime_checkable
class RunsAgents(Protocol):
    """An engine that can run Corral's agent (`corral node-agent`) on each of its nodes."""

    node_agents: NodeAgentsOf


@runtime_checkable
class LoopbackPorts(Protocol):
    """An engine whose tasks listen on the loopback of the server's machine."""

    def check_port(self, attempt: AttemptId, port: int) -> None:
        """Check that an attempt runs here and was given the port.

        Raises NotFound.
        """
        ...


class WorkFolders(Protocol):
    """Where the working folders of tasks are. A task may write anything into its own, links included."""

    last_look: Callable[[Mapping[AttemptId, str]], Awaitable[None]] | None
    """Awaited before the folders of ended attempts are removed; it must not raise."""

    def all(self) -> Mapping[AttemptId, str]:
        """Return the folder of each attempt that is not forgotten; there may be none at that path."""
        ...


@runtime_checkable
class ObjectListing(Protocol):
    """An engine of a cluster whose nodes and pods administrators may list."""

    async def listed_objects(self, kind: str, namespace: str = "") -> bytes:
        """Return the cluster's own JSON answer: its `nodes`, or its `pods` (of one namespace, or of all).

        Raises a CorralError; Forbidden where Corral may not look.
        """
        ...


@runtime_checkable
class CertifiedCluster(Protocol):
    """An engine of a cluster that shows certificates, which end with others of the cluster."""

    @property
    def certificate_ends(self) -> Mapping[str, float]:
        """When those end that were seen, in seconds since 1970, by whose they are: `OF_API`, `OF_REGISTRY`."""
        ...


@runtime_checkable
class SharedCluster(Protocol):
    """An engine of a cluster in which other applications run beside Corral's, in queues of its own."""

    async def cluster_use(self) -> ClusterUse:
        """Return the cluster's queues and the applications that are not Corral's, at most some seconds old.

        Raises Unavailable when the cluster does not answer.
        """
        ...


@runtime_checkable
class Versioned(Protocol):
    """An engine of a cluster that has a version of its own."""

    async def version(self) -> str:
        """Return the version of the cluster's software. Raises a CorralError when the cluster does not answer."""
        ...


class Documents(Protocol):
    """Cluster objects that stand for jobs: followed, and written field by field. Kinds are named by their titles."""

    async def run(self) -> None:
        """Follow every kind until cancelled. No failure of the cluster ends it."""
        ...

    async def changes(self) -> list[DocumentChange]:
        """Wait for changes and take them: the latest state of each object, deleted ones included. One reader only."""
        ...

    def listed(self, kind: str) -> Collection[str] | None:
        """Return the UIDs of all objects of a kind, as last seen; None before the first complete list."""
        ...

    async def whole(self, kind: str) -> Collection[str]:
        """Wait for a complete list of a kind and return its UIDs."""
        ...

    def trouble(self, kind: str) -> CorralError | None:
        """Return why a kind is not followed at present, or None while it is."""
        ...

    def set_external_jobs(self, uids: Collection[str]) -> None:
        """Set the objects whose jobs run under their own controllers (`external`) and hold places here.

        Pods that they own count as tasks of those jobs, and not a second time against their nodes.
        """
        ...

    async def definition(self, kind: str) -> Mapping[str, str] | None:
        """Return the annotations of a kind's CustomResourceDefinition, or None when the cluster has none.

        Raises a CorralError; Forbidden where Corral may not look.
        """
        ...

    async def apply(
        self, ref: ObjectRef, fields: Mapping[str, Any], *, version: str, part: str = "", subresource: str = ""
    ) -> str:
        """Write these fields by server-side apply with force, and return the object's new version.

        Each `part` is a field manager of its own: fields left out of it are given up, other parts stay. `version` is
        the one that the fields were computed for.
        Raises NotFound when the object is gone, Conflict when it was replaced or has another version by now,
        Unavailable `lease-over` when this server may no longer write.
        """
        ...

    async def merge(self, ref: ObjectRef, fields: Mapping[str, Any], *, version: str) -> str:
        """Merge fields into an object without taking their ownership, and return the object's new version.

        Raises like `apply`.
        """
        ...
