"""Have the inputs of new jobs located beside the control loop, and tell the core on which nodes they are.

A failure is logged and tells the core that nothing is known. After a NameNode that did not answer, no job waits for one
for a minute.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec
import structlog

from corral.control.core import InputsLocated, InputsSought, IntentsRead
from corral.control.loop import Control
from corral.kernel.clock import Clock
from corral.kernel.errors import CorralError, Unavailable
from corral.kernel.ids import JobId
from corral.model.input_bytes import InputBytes, input_bytes
from corral.model.inventory import HOST_LABEL, Node
from corral.model.store_writes import IntentKind, LiveJob
from corral.storage.block_locations import BlockLocator, NameNodes, name_nodes_of

log = structlog.get_logger()

_MOST_URIS: Final = 16
"""Inputs of one job that are located: its first ones."""
_MOST_QUESTIONS: Final = 64
"""Sets of inputs that are located at once; jobs with others do not wait, and nothing is known of their inputs."""
_QUIET: Final = 60.0
"""Seconds after an unanswered question in which none is asked."""
_HOST_LABELS: Final = (HOST_LABEL, "kubernetes.io/hostname")


class Located(Protocol):
    """The bytes at a URI, by the sets of hosts that hold them."""

    @property
    def total(self) -> int:
        """The bytes of everything at the URI."""

    @property
    def by_hosts(self) -> Mapping[frozenset[str], int]:
        """The bytes that all hosts of a set hold, by the hosts' names and addresses."""


class Where(Protocol):
    """Says where bytes are; `corral.storage.block_locations` does for HDFS."""

    def knows(self, uri: str) -> bool:
        """Whether `where` would ask somebody."""

    def where(self, uri: str, account: str) -> Awaitable[Located]:
        """Return the hosts that hold the bytes at a URI; raises CorralError."""

    async def close(self) -> None:
        """Close all connections."""


class _Input(msgspec.Struct):
    uri: str


class _Spec(msgspec.Struct):
    inputs: list[_Input] = []


class _Document(msgspec.Struct):
    spec: _Spec


_DOCUMENT: Final = msgspec.json.Decoder(_Document)


class _Question(NamedTuple):
    """What several jobs may ask, such as those of an array."""

    user: str
    uris: tuple[str, ...]


class InputLocations:
    """Locates the inputs of jobs, each when it is submitted."""

    def __init__(
        self,
        places: Where,
        seconds: float,
        clock: Clock,
        nodes: Callable[[], Iterable[Node]],
        tell: Callable[[InputsLocated], None],
    ) -> None:
        """A job waits at most so many `seconds` for its place; `tell` hears where the inputs of a job are."""
        self._places = places
        self._seconds = seconds
        self._clock = clock
        self._nodes = nodes
        self._tell = tell
        self._quiet_until = 0.0
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """End all questions."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._places.close()

    def seek(self, read: IntentsRead) -> list[InputsSought]:
        """Begin to locate the inputs of newly submitted jobs; returns what the core is to be told before them."""
        now = self._clock.now()
        if now < self._quiet_until:
            return []
        submitted = (each.job for each in read.intents if each.kind == IntentKind.SUBMITTED)
        records = (record for job in submitted if (record := read.jobs.get(job)) is not None)
        asked: dict[_Question, list[JobId]] = {}
        for record in records:
            question = self._question(record)
            if question in asked or (question is not None and len(asked) + len(self._tasks) < _MOST_QUESTIONS):
                asked.setdefault(question, []).append(record.id)
        for question, jobs in asked.items():
            task = asyncio.create_task(self._locate(question, jobs))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        sought = tuple(job for jobs in asked.values() for job in jobs)
        return [InputsSought(sought, now + self._seconds)] if sought else []

    def _question(self, record: LiveJob) -> _Question | None:
        if "hdfs://" not in record.doc or record.run.roles or record.run.external:
            return None
        uris = dict.fromkeys(each.uri for each in _DOCUMENT.decode(record.doc).spec.inputs)
        known = tuple(uri for uri in uris if self._places.knows(uri))[:_MOST_URIS]
        return _Question(record.user, known) if known else None

    async def _locate(self, question: _Question, jobs: Sequence[JobId]) -> None:
        inputs: InputBytes | None = None
        try:
            found = await asyncio.gather(*(self._places.where(uri, question.user) for uri in question.uris))
            inputs = on_nodes(found, self._nodes())
        except CorralError as error:
            if isinstance(error, Unavailable):
                self._quiet_until = self._clock.now() + _QUIET
            log.warning("inputs were not located", job=jobs[0], jobs=len(jobs), code=error.code, message=error.message)
        except Exception:  # whatever goes wrong, the jobs must not wait for it
            log.exception("inputs could not be located", job=jobs[0], jobs=len(jobs))
        finally:
            for job in jobs:
                self._tell(InputsLocated(job, inputs))


def locate_inputs(
    control: Control, systems: Sequence[NameNodes], name_nodes: str, seconds: float
) -> InputLocations | None:
    """Have control learn where the inputs of new jobs are; None if no NameNode is to be asked.

    `systems` are those of engines, `name_nodes` and `seconds` the settings `name_nodes` and `locality_seconds`. Raises
    InvalidInput for unusable settings.
    """
    asked = [*systems, *([name_nodes_of(name_nodes)] if name_nodes else ())]
    if not asked or not seconds:
        return None
    locations = InputLocations(
        BlockLocator(asked, seconds=seconds), seconds, control.clock,
        lambda: control.machines.nodes.values(), control.inputs_located,
    )  # fmt: skip
    control.seek_inputs = locations.seek
    return locations


def on_nodes(found: Sequence[Located], nodes: Iterable[Node]) -> InputBytes:
    """Count bytes by the nodes that are on the hosts that hold them; hosts without a node count for none."""
    by_host: dict[str, set[str]] = {}
    for node in nodes:
        labels = (node.labels.get(label, "") for label in _HOST_LABELS)
        for host in {node.name.partition("/")[2], *labels} - {""}:
            for spelling in _spellings(host):
                by_host.setdefault(spelling, set()).add(node.name)
    held: dict[frozenset[str], int] = {}
    for each in found:
        for hosts, size in each.by_hosts.items():
            names = [next((by_host[name] for name in _spellings(host) if name in by_host), ()) for host in hosts]
            holders = frozenset(node for of_host in names for node in of_host)
            held[holders] = held.get(holders, 0) + size
    return input_bytes(sum(each.total for each in found), held)


def _spellings(host: str) -> tuple[str, ...]:
    """The names by which a host is known, the fullest first: `a.example.org` is `a` where nobody has the full name."""
    host = host.lower().rstrip(".")
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return tuple(dict.fromkeys((host, host.partition(".")[0])))
    return (host,)
