"""The worst engine that the guarantees allow: it loses, repeats, delays and reorders its reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from corral.kernel.ids import AttemptId, TaskKey, parse_attempt_id
from corral.launcher import Step
from corral.model.commands import EngineCommand, ForgetTask, ReleasePlacement, RequestPlacement, StartTask, StopTask
from corral.model.events import StartRefused, Unplaceable
from corral.model.exits import classify
from corral.model.launch import Exited, Started
from tests.launcher.driver import Driver


@dataclass
class Instance:
    """The engine's record of one attempt."""

    attempt: AttemptId
    code: int | None = None
    """None while it runs."""


@dataclass
class Engine:
    """Runs attempts; idempotent by attempt id; reports each until it is forgotten."""

    records: dict[AttemptId, Instance] = field(default_factory=dict)
    codes: dict[AttemptId, int] = field(default_factory=dict)
    """The true exit code of every attempt that ever ended."""
    ran: list[AttemptId] = field(default_factory=list)
    stopped: set[AttemptId] = field(default_factory=set)
    sent: list[Started | Exited] = field(default_factory=list)
    """The reports in flight to control, in no order."""
    told: list[Started | Exited] = field(default_factory=list)
    """Every report once; any of them may be sent again, however late."""

    def tell(self, event: Started | Exited) -> None:
        self.sent.append(event)
        if event not in self.told:
            self.told.append(event)

    def running(self) -> list[AttemptId]:
        return [one.attempt for one in self.records.values() if one.code is None]

    def start(self, attempt: AttemptId) -> None:
        if attempt in self.records:
            return
        task = parse_attempt_id(attempt).task
        others = [other for other in self.running() if parse_attempt_id(other).task == task]
        assert not others, f"{attempt} would run beside {others}"
        assert attempt not in self.ran, f"{attempt} would run twice"
        self.records[attempt] = Instance(attempt)
        self.ran.append(attempt)
        self.tell(Started(attempt, 0.0))

    def stop(self, attempt: AttemptId) -> None:
        self.stopped.add(attempt)
        if attempt not in self.records:
            self.records[attempt] = Instance(attempt, 143)
            self.tell(Exited(attempt, 0.0, 143, reason="stopped before it was started"))

    def finish(self, attempt: AttemptId, code: int) -> None:
        self.records[attempt].code = self.codes[attempt] = code
        self.tell(Exited(attempt, 0.0, code))

    def forget(self, attempt: AttemptId) -> None:
        record = self.records.get(attempt)
        if record is not None:
            assert record.code is not None, f"{attempt} was forgotten while it ran"
            del self.records[attempt]

    def report_all(self) -> None:
        """Send the reports with which a reopened watch begins."""
        for one in self.records.values():
            self.tell(Started(one.attempt, 0.0) if one.code is None else Exited(one.attempt, 0.0, one.code))


class Control(Driver):
    """The driver with a durable outbox, first in first out per task; carrying out may be interrupted anywhere."""

    def __init__(self, *arguments, **fields) -> None:  # type: ignore[no-untyped-def]
        self.engine = Engine()
        self.outbox: dict[TaskKey, list[EngineCommand]] = {}
        self.history: dict[AttemptId, int] = {}
        self.ordered: set[AttemptId] = set()
        """Attempts whose end was decided before it was seen."""
        super().__init__(*arguments, **fields)

    def apply(self, done: Step) -> Step:
        free = set(self.waiting) | set(self.held)
        before = dict(self.tasks)
        verdict = self.run.completion if hasattr(self, "run") else None
        attempt = self.run.attempt if verdict else None
        for command in done.commands:
            if isinstance(command, ReleasePlacement):
                assert set(command.tasks) <= free, "released what was neither held nor waited for"
            elif not isinstance(command, RequestPlacement):
                self.outbox.setdefault(parse_attempt_id(command.attempt).task, []).append(command)
        super().apply(done)
        for command in done.commands:
            if isinstance(command, StartTask | StopTask):
                task = parse_attempt_id(command.attempt).task
                self.ordered |= {command.attempt} if isinstance(command, StopTask) else set()
                assert task in self.tasks and self.attempt(task) == command.attempt, "a command for what is not there"
        if verdict is not None and self.run.attempt == attempt:
            assert self.run.completion == verdict, "the completion of an attempt was changed"
        for end in done.ended:
            assert end.attempt not in self.history, "an attempt ended twice"
            assert end.task.completion is not None
            stored = before[end.task.key].completion
            assert stored in (None, end.task.completion), "how an attempt ends was stored, and changed"
            self.history[end.attempt] = end.task.completion.code
        return done

    # -- carrying out --------------------------------------------------------------------------------------------------

    def pending(self) -> list[TaskKey]:
        return sorted(key for key, commands in self.outbox.items() if commands)

    def carry_out(self, key: TaskKey, *, acknowledged: bool = True) -> None:
        """Carry out the oldest command of a task; if unacknowledged, it will be repeated."""
        command = self.outbox[key][0]
        act: dict[type, Callable[[AttemptId], None]] = {
            StartTask: self.engine.start,
            StopTask: self.engine.stop,
            ForgetTask: self.engine.forget,
        }
        act[type(command)](command.attempt)
        if acknowledged:
            self.outbox[key].pop(0)

    def unstarted(self) -> list[TaskKey]:
        """Tasks whose oldest command is a start that the engine has not received."""
        return [
            key
            for key in self.pending()
            if isinstance(self.outbox[key][0], StartTask) and self.outbox[key][0].attempt not in self.engine.records
        ]

    def refuse(self, key: TaskKey, code: int) -> None:
        command = self.outbox[key].pop(0)
        self.send(StartRefused(command.attempt, self.now, classify(code, "refused")))

    def lose_place(self, key: TaskKey) -> None:
        """Remove the machine before the start is tried."""
        command = self.outbox[key].pop(0)
        if key in self.tasks and self.attempt(key) == command.attempt:
            self.send(Unplaceable((key,), "the machine is gone"))

    def settle(self, rounds: int = 300) -> None:
        """Stop the faults: carry out, report and deliver until nothing is left."""
        for _ in range(rounds):
            self.engine.sent.clear()
            self.engine.report_all()
            for event in self.engine.sent.copy():
                self.send(event)
            for key in self.pending():
                while self.outbox[key]:
                    self.carry_out(key)
            if self.waiting:
                self.place()
            for attempt in self.engine.running():
                self.engine.finish(attempt, 143 if attempt in self.engine.stopped else 0)
            if not self.busy():
                if self.run.wake_at is None:
                    return
                self.advance(max(0.0, self.run.wake_at - self.now))

    def busy(self) -> bool:
        return bool(self.waiting or self.pending() or self.engine.records)
