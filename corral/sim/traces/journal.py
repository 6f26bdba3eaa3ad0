"""A journal of decisions as a trace: the jobs that were submitted, and how long they ran (docs/journal.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from msgspec.structs import replace

from corral.control.core.intents import IntentsRead
from corral.control.core.machines import MachinesSeen
from corral.control.journal.blocks import MAGIC, BlockReader
from corral.control.journal.records import Begun, DocumentsRead, State, Step, configured, decoded
from corral.control.journal.rules import Rules
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import AttemptId, JobId, TaskKey, parse_attempt_id
from corral.kernel.units import DEVICE
from corral.model.configuration import Configuration
from corral.model.inventory import Inventory, Node
from corral.model.job_edits import Edit, edited
from corral.model.launch import Exited, Started
from corral.model.states import TaskState
from corral.model.store_writes import Intent, IntentKind, LiveJob
from corral.sim.machines import ENGINE, Site, checked_site
from corral.sim.trace import WHOLE, TraceJob, TraceProblem
from corral.spec.errors import shorten
from corral.spec.job import UnifiedJob

_RUNS: Final = frozenset({TaskState.PREPARING, TaskState.RUNNING})


def fits(first: str) -> bool:
    """Return whether the first line of a trace begins a journal."""
    return first == MAGIC.decode()


def read_lines(lines: Iterable[str]) -> Iterator[tuple[int, TraceJob | str]]:
    """Refuse lines: a journal is read as bytes."""
    raise InvalidInput("no-journal", "A journal cannot be read line by line.")


def read_journal(file: BinaryIO) -> Iterator[tuple[int, TraceJob | str]]:
    """Yield the jobs of a journal in the order of their submission, each with its number.

    A job is submitted when it was, or at the beginning if it was there before; then it has the rest of its run before it.
    It runs as long as the longest of its tasks: runs that ended by themselves count together, a run that was stopped
    counts if none followed, and one that goes on at the end of the journal counts until then. Raises InvalidInput for a
    file that is no journal, and TraceProblem for one that was cut off or altered.
    """
    reader = BlockReader(file)
    try:
        found = _lives(reader)
    except ValueError as error:  # the inputs of a journal that was made by hand may be anything
        raise TraceProblem(1, f"the journal cannot be read: {shorten(str(error), 200)}".rstrip(".")) from None
    if reader.problem or found is None:
        raise TraceProblem(1, (reader.problem or "the journal has no beginning").rstrip("."))
    for number, life in enumerate(found.jobs.values(), 1):
        job = _job(life)
        yield number, f"job {shorten(life.record.name, 63)}: {job}" if isinstance(job, str) else job


def _lives(reader: BlockReader) -> _Lives | None:
    found: _Lives | None = None
    for data in reader:
        record = decoded(data)
        if isinstance(record, Begun):
            found = found or _Lives(record.at)
            found.begin(record)
        elif isinstance(record, Step) and found is not None:
            found.take(record)
    if found is not None:
        found.finish()
    return found


def read_site(file: BinaryIO) -> Site:
    """Return the machines of a journal, and its queues and policy.

    Each node that was seen is there from the beginning, as it was last seen with devices, ready and without cordons or
    taints. The documents are the last ones; a queue that they lack is as it was before. Raises InvalidInput for a file
    that is no journal, and for documents that this Corral cannot follow.
    """
    found = _Place()
    rules = Rules()
    for data in BlockReader(file):
        record = decoded(data)
        if isinstance(record, Begun):
            rules = record.rules
            found.begin(record.state, rules)
        elif isinstance(record, Step):
            for each in record.inputs:
                if isinstance(each, MachinesSeen):
                    found.see(each.inventory)
                elif isinstance(each, DocumentsRead):
                    found.configure(each, rules)
    return found.site()


@dataclass
class _Life:
    """One job, and the runs of its tasks in seconds."""

    record: LiveJob
    submitted: float
    doc: str
    model: str = ""
    """The model of the devices on which it started first; "" where it has none."""
    ended: dict[TaskKey, float] = field(default_factory=dict)
    """Of runs that ended by themselves, together."""
    stopped: dict[TaskKey, float] = field(default_factory=dict)
    """Of the last run, if it was stopped."""

    @property
    def seconds(self) -> float | None:
        """How long it runs; None if it never started."""
        tasks = self.ended.keys() | self.stopped.keys()
        return max((self.ended.get(key, 0.0) + self.stopped.get(key, 0.0) for key in tasks), default=None)


class _Lives:
    def __init__(self, begun_at: float) -> None:
        self.jobs: dict[JobId, _Life] = {}
        self._at = begun_at
        self._running: dict[AttemptId, float] = {}
        """When each attempt that runs started."""
        self._stopped: set[AttemptId] = set()
        self._models: dict[str, Mapping[int, str]] = {}

    def begin(self, begun: Begun) -> None:
        """Take over the jobs that are there when a core begins; attempts that are gone have ended by then."""
        self._at = begun.at
        held: set[AttemptId] = set()
        for seen in begun.state.machines:
            if isinstance(seen, MachinesSeen):
                self._see(seen.inventory)
        first = not self.jobs
        for record in begun.state.jobs:
            self._know(record, begun.at if first else record.created_at)
            for task in record.tasks.values():
                if task.state in _RUNS and task.placement is not None:
                    attempt = record.run.attempt_of(task)
                    held.add(attempt)
                    self._running.setdefault(attempt, begun.at if first else task.started_at or begun.at)
                    self._placed(record.id, task.placement.node, task.placement.devices)
        for attempt in self._running.keys() - held:
            self._end(attempt, begun.at)

    def take(self, step: Step) -> None:
        """Read one step."""
        self._at = step.at
        for each in step.inputs:
            match each:
                case IntentsRead():
                    for intent in each.intents:
                        self._ask(intent, each.jobs)
                case Started(attempt=attempt, at=at):
                    self._begin(attempt, at)
                case Exited(attempt=attempt, at=at):
                    self._end(attempt, at)
                case MachinesSeen():
                    self._see(each.inventory)
        for decision in step.decisions:
            if decision.verb == "stop":
                self._stopped.add(AttemptId(decision.attempt))
            elif decision.verb == "start":
                self._placed(decision.job, decision.node, decision.devices)

    def finish(self) -> None:
        """Have what still runs count until now."""
        for attempt in list(self._running):
            self._stopped.add(attempt)
            self._end(attempt, self._at)

    def _ask(self, intent: Intent, jobs: Mapping[JobId, LiveJob]) -> None:
        record = jobs.get(intent.job)
        if intent.kind == IntentKind.SUBMITTED and record is not None:
            self._know(record, record.created_at)
        life = self.jobs.get(intent.job)
        if intent.kind == IntentKind.EDIT and life is not None and life.seconds is None:
            words = {name: value for name, value in intent.data.items() if name in ("priority", "queue")}
            if words and all(isinstance(each, str) for each in words.values()):
                life.doc = edited(life.doc, Edit(**words))

    def _know(self, record: LiveJob, submitted: float) -> None:
        if record.id not in self.jobs and not record.run.external:
            self.jobs[record.id] = _Life(record, submitted, record.doc)

    def _begin(self, attempt: AttemptId, at: float) -> None:
        self._running.setdefault(attempt, at)
        parsed = parse_attempt_id(attempt)
        if (life := self.jobs.get(parsed.job)) is not None:
            life.stopped.pop(parsed.task, None)

    def _end(self, attempt: AttemptId, at: float) -> None:
        begun, parsed = self._running.pop(attempt, None), parse_attempt_id(attempt)
        life = self.jobs.get(parsed.job)
        if begun is None or life is None:
            return
        seconds = max(0.0, at - begun)
        if attempt in self._stopped:
            life.stopped[parsed.task] = seconds
        else:
            life.ended[parsed.task] = life.ended.get(parsed.task, 0.0) + seconds

    def _placed(self, job: JobId, node: str, devices: tuple[int, ...]) -> None:
        life = self.jobs.get(job)
        if life is not None and devices and not life.model:
            life.model = self._models.get(node, {}).get(devices[0], "")

    def _see(self, inventory: Inventory) -> None:
        for node in inventory.nodes:
            self._models[node.name] = {device.index: device.model for device in node.devices}


def _job(life: _Life) -> TraceJob | str:
    """Return a job as the trace has it, or what is wrong with it."""
    if life.seconds is None:
        return "it never started"
    try:
        document = UnifiedJob.model_validate_json(life.doc)
    except ValueError:
        return "its document cannot be read"
    millis, spec = document.device_millis, document.spec
    cpu, memory = (0, 0) if millis else _besides(document)
    if not millis and not cpu:
        return "it held no device, and names no processors"
    model = spec.speeds.get(life.model, 0.0)
    return TraceJob(
        life.record.name,
        life.submitted,
        life.seconds,
        -(-millis // DEVICE),
        life.record.user,
        spec.queue,
        document.priority,
        part=-(-millis // 10) * 10 if 0 < millis < DEVICE else WHOLE,
        cpu_millis=cpu,
        memory_bytes=memory,
        speeds=tuple(sorted((name, speed / model) for name, speed in spec.speeds.items())) if model else (),
    )


def _besides(document: UnifiedJob) -> tuple[int, int]:
    """The processors, in thousandths, and the bytes of memory of all tasks."""
    roles = [(document.replicas_of(role.name), role.resources) for role in document.spec.roles]
    return (
        sum(count * each.cpu_millis for count, each in roles),
        sum(count * each.memory_bytes for count, each in roles),
    )


class _Place:
    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._levels: tuple[str, ...] = ()
        self._inventory: Inventory | None = None
        self._now = Configuration()

    def begin(self, state: State, rules: Rules) -> None:
        self.configure(state.configured, rules)
        for seen in state.machines:
            if isinstance(seen, MachinesSeen):
                self.see(seen.inventory)

    def see(self, inventory: Inventory) -> None:
        """Take over the nodes of an engine."""
        self._inventory = inventory
        for node in inventory.nodes:
            if node.devices or node.name not in self._nodes:
                self._nodes[node.name] = node

    def configure(self, read: DocumentsRead, rules: Rules) -> None:
        """Take over documents."""
        before, now = self._now, configured(read, rules).now
        queues = {**before.queues, **now.queues}
        self._now = Configuration(now.clusters, queues, now.policy, now.storages, now.change)

    def site(self) -> Site:
        """Return the machines; raises InvalidInput if there are none."""
        if self._inventory is None:
            raise InvalidInput("no-machines", "The journal says of no machines; name them with --cluster.")
        engines = {name.partition("/")[0] for name in self._nodes}
        engine = self._inventory.engine if len(engines) == 1 else ENGINE
        nodes = tuple(
            _ready(node, node.name if len(engines) == 1 else _joined(node.name)) for node in self._nodes.values()
        )
        inventory = Inventory(engine, nodes, self._inventory.levels, self._inventory.pinned)
        return checked_site(Site(inventory, self._now))


def _joined(name: str) -> str:
    """The name of a node of one of several engines, as all are one to a simulation."""
    engine, _, own = name.partition("/")
    return f"{ENGINE}/{engine}.{own}"


def _ready(node: Node, name: str) -> Node:
    devices = tuple(replace(device, healthy=True, health_reason="") for device in node.devices)
    return replace(
        node, name=name, devices=devices, ready=True, ready_reason="", cordoned=False, taints=(), mismatches=()
    )
