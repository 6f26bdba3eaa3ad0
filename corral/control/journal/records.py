"""The records of a journal: how a core began, each of its steps, and checkpoints."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from corral.control.core.configuration import Configured, planner_settings
from corral.control.core.inputs import (
    ConfigurationRead,
    CordonsRead,
    Input,
    InputsLocated,
    InputsSought,
    Recovered,
    Underway,
)
from corral.control.core.intents import IntentsRead
from corral.control.core.machines import MachinesSeen, Remembered
from corral.control.journal.rules import Rules
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import JobId
from corral.launcher import LaunchPolicy
from corral.model.configuration import canonical, configuration_of
from corral.model.cordons import Cordon
from corral.model.events import PlaceLost, StartRefused
from corral.model.launch import EngineLost, Exited, Noted, Started
from corral.model.queues import QueueUsage, UserUsage
from corral.model.receipts import LedgerEntry, Receipt
from corral.model.store_writes import LiveJob
from corral.scheduler import EngineUnknown, GuaranteeLost
from corral.spec.configuration_file import Document, load_document
from corral.spec.errors import shorten


class DocumentsRead(msgspec.Struct, frozen=True, tag=True):
    """The configuration from then on: `ConfigurationRead` as documents."""

    documents: tuple[str, ...]
    """The canonical text of each document in force."""
    change: int
    """The documents' revision."""
    following: tuple[str, ...] = ()


WrittenInput = (
    IntentsRead | CordonsRead | MachinesSeen | EngineUnknown | DocumentsRead
    | Started | Exited | StartRefused | PlaceLost | Noted | EngineLost | InputsSought | InputsLocated
)  # fmt: skip


class State(msgspec.Struct, frozen=True):
    """All that a core begins with: `Recovered`, with its configuration as documents."""

    configured: DocumentsRead
    cursor: int = 0
    jobs: Sequence[LiveJob] = ()
    needed: Mapping[JobId, LiveJob] = {}
    groups: Mapping[str, tuple[str, ...]] = {}
    cordons: Mapping[str, Cordon] = {}
    machines: Sequence[MachinesSeen | EngineUnknown] = ()
    receipts: Sequence[Receipt] = ()
    ledger: Sequence[LedgerEntry] = ()
    usage: Sequence[QueueUsage] = ()
    user_usage: Sequence[UserUsage] = ()
    ended_service: Sequence[float] = ()
    losses: Sequence[GuaranteeLost] = ()


class Begun(msgspec.Struct, frozen=True, tag="begun"):
    """A core was built from what was stored: at the start of a control, and after a failure."""

    at: float
    """Seconds since 1970."""
    corral: str
    """The version of Corral."""
    rules: Rules
    launch: LaunchPolicy
    remembered: Remembered
    """What was known of the machines before."""
    state: State
    unexplained: bool = False
    """Whether it finds no reasons why jobs wait, as in a simulation."""
    underway: Underway | None = None
    """Of a checkpoint: what the core knew beside the state; None: it was built from the state alone."""


class Checkpoint(msgspec.Struct, frozen=True, tag="checkpoint"):
    """The state between two steps of a core that goes on, from which a replay can begin."""

    number: int
    """The step before it."""
    begun: Begun


EVENT: Final = "event"
"""The verb of what a step says of a job; only journals that a replay wrote have them."""


WAIT: Final = "wait"
"""The verb of why a job waits from then on, where that changed; cores that find no reasons have none."""
COMMANDS: Final = frozenset({"start", "stop"})
"""The verbs of commands."""


class Decision(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A command of a batch, in short, or what the batch says of a job."""

    verb: str
    """`start`, `stop`, `wait` or `event`."""
    attempt: str
    """The attempt; of a reason to wait and of an event the job."""
    node: str = ""
    devices: tuple[int, ...] = ()
    why: str = ""

    @property
    def job(self) -> JobId:
        """The job of its attempt."""
        return JobId(self.attempt.partition(".")[0])


class Step(msgspec.Struct, frozen=True, tag="step", gc=False):
    """One step: its time, its inputs, and what it decided."""

    number: int
    """Counted from 1 since its control started."""
    at: float
    inputs: tuple[WrittenInput, ...]
    digest: bytes
    """The hash of the batch (`corral.control.journal.decisions`)."""
    decisions: tuple[Decision, ...] = ()


class _WrittenStep(msgspec.Struct, frozen=True, tag="step", gc=False, omit_defaults=True):
    """A step whose inputs are encoded already: the core may change what they hold while it folds them."""

    number: int
    at: float
    inputs: msgspec.Raw
    digest: bytes
    decisions: tuple[Decision, ...] = ()


Record = Begun | Checkpoint | Step
_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Record)


def encoded(record: Record) -> bytes:
    """A record as it is written."""
    return _ENCODER.encode(record)


def encoded_inputs(inputs: Iterable[Input]) -> bytes:
    """The inputs of a step as they are written; to be taken before the core folds them."""
    return _ENCODER.encode([_written(each) for each in inputs])


def encoded_step(number: int, at: float, inputs: bytes, digest: bytes, decisions: tuple[Decision, ...]) -> bytes:
    """The record of a step, with what `encoded_inputs` returned before it."""
    return _ENCODER.encode(_WrittenStep(number, at, msgspec.Raw(inputs), digest, decisions))


def decoded(data: bytes) -> Record:
    """Read a record; raises InvalidInput for data that is none."""
    try:
        record: Record = _DECODER.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        message = f"A record of the journal cannot be read by this Corral: {shorten(str(error), 200).rstrip('.')}."
        raise InvalidInput("broken-journal-record", message) from None
    return record


class _At(msgspec.Struct, gc=False):
    at: float = 0.0


class _Mark(msgspec.Struct, gc=False):
    """What of a record says whether a replay may begin there."""

    type: str = ""
    at: float = 0.0
    begun: _At | None = None


_MARKS: Final = msgspec.msgpack.Decoder(_Mark)


def beginning_at(data: bytes) -> float | None:
    """The time of a record from which a replay may begin, in seconds since 1970; None for another record."""
    mark = _mark(data)
    return None if mark.begun is None and mark.type != "begun" else _time(mark)


def time_of(data: bytes) -> float:
    """The time of a record, in seconds since 1970; 0 of data that is none."""
    return _time(_mark(data))


def _mark(data: bytes) -> _Mark:
    try:
        return _MARKS.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return _Mark()


def _time(mark: _Mark) -> float:
    return mark.at if mark.begun is None else mark.begun.at


def folded(inputs: Iterable[WrittenInput], rules: Rules) -> list[Input]:
    """The inputs of a step as a core takes them.

    Raises InvalidInput for documents or a policy that this Corral cannot follow.
    """
    return [ConfigurationRead(configured(each, rules)) if isinstance(each, DocumentsRead) else each for each in inputs]


def documents_of(found: Configured) -> DocumentsRead:
    """A configuration as its documents."""
    now = found.now
    documents: list[Document] = [*now.clusters.values(), *now.queues.values(), *now.storages.values()]
    if now.policy is not None:
        documents.append(now.policy)
    return DocumentsRead(tuple(map(canonical, documents)), now.change, tuple(sorted(found.following)))


def configured(read: DocumentsRead, rules: Rules) -> Configured:
    """The configuration that the documents say, under these rules.

    Raises InvalidInput for documents or a policy that this Corral cannot follow.
    """
    try:
        documents = [load_document(json.loads(text))[0] for text in read.documents]
    except (ValueError, RecursionError):
        raise InvalidInput("broken-journal-document", "A document of the journal is not JSON text.") from None
    now = configuration_of(documents, read.change)
    policy = rules.chosen(now)
    return Configured(policy, now, planner_settings(policy, now), frozenset(read.following))


def state_of(recovered: Recovered) -> State:
    """What a core begins with, as it is written."""
    fields = {name: getattr(recovered, name) for name in State.__struct_fields__ if name != "configured"}
    return State(documents_of(recovered.configured), **fields)


def recovered_from(state: State, rules: Rules) -> Recovered:
    """What a core begins with; raises as `configured` does."""
    fields = {name: getattr(state, name) for name in State.__struct_fields__ if name != "configured"}
    return Recovered(configured(state.configured, rules), **fields)


def _written(each: Input) -> WrittenInput:
    return documents_of(each.configured) if isinstance(each, ConfigurationRead) else each
