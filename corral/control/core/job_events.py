"""Bring every event to its job through the launcher's rules, into memory and into the pending writes alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count

import msgspec

from corral import launcher, scheduler
from corral.control.core.pending_writes import PendingWrites
from corral.control.core.receipts import HeldDevices, PreemptionTerms, Receipts
from corral.control.core.world import Job, World
from corral.kernel.ids import AttemptId, JobId, TaskKey, parse_attempt_id
from corral.launcher import InvalidTransition, LaunchPolicy, Step
from corral.model.commands import ForgetTask, ReleasePlacement, RequestPlacement, StopTask
from corral.model.events import (
    Checkpointed,
    DependencyFailed,
    HoldReleased,
    JobEvent,
    Placed,
    PlaceLost,
    Preempted,
    StartRefused,
    SuspendRequested,
    Unplaceable,
    WorkReported,
)
from corral.model.facts import GUARANTEE_LOST, TASK_NOTED, Fact
from corral.model.input_bytes import InputBytes
from corral.model.launch import Exited, Noted, Started
from corral.model.placement import Placement, TaskPlacement
from corral.model.plan import GangPlacement
from corral.model.requests import GangRequest
from corral.model.runs import TaskRun, WorkReport
from corral.model.states import TaskState
from corral.model.store_writes import AttemptWrite, FactWrite
from corral.scheduler import GangQueued, GangWithdrawn, NominationLapsed, TasksReleased, gang_placed
from corral.scheduler.events import HistoryRecalled, TasksLeaving

DEPENDENCY = "dependency"
_NONE: Mapping[AttemptId, TaskRun] = {}


class JobEvents:
    """Applies events to jobs, and their effects to the world and the pending writes."""

    def __init__(self, world: World, policy: LaunchPolicy, receipts: Receipts, *, recorded: bool = True) -> None:
        """With `recorded`, attempts are among the writes."""
        self.world = world
        self.policy = policy
        self.pending = PendingWrites()
        self.receipts = receipts
        self._recorded = recorded

    def take_pending(self) -> PendingWrites:
        """The writes that are pending since the last call; starts a new collection."""
        pending, self.pending = self.pending, PendingWrites()
        return pending

    def create(self, job: Job, now: float) -> None:
        """Start a job that was accepted and never folded."""
        self.world.jobs[job.id] = job
        self.wait_for(job)
        hold = DEPENDENCY if job.needs else ""
        step = launcher.create(job.id, job.view, now, hold=hold, suspended=job.run.suspended)
        if job.run.external:
            step = msgspec.structs.replace(step, job=msgspec.structs.replace(step.job, external=True))
        self._apply(job, step, now)

    def wait_for(self, job: Job) -> None:
        """Register the job as a dependent of the jobs that it waits for."""
        for other in job.waits_for:
            self.world.dependents.setdefault(other, set()).add(job.id)

    def adopt(self, job: Job, now: float) -> None:
        """Load a stored job: charge its held devices to the cluster, and queue its tasks without a placement."""
        placed = [task for task in job.tasks.values() if task.placement is not None and task.holds]
        if placed:
            keys = [task.key for task in placed]
            request = _asked(job, keys)
            placements = tuple(task.placement for task in placed if task.placement is not None)
            self.world.fold(gang_placed(request, Placement(placements), job.run.placed_at or now))
            self._tell_saved(job)
        if job.run.served is not None:
            self.world.fold(HistoryRecalled(job.id, job.run.served))
        if placed:
            self._leave(job, tuple(task.key for task in placed if task.state is TaskState.DELETION_PENDING))
        if unplaced := job.unplaced():
            self._queue(job, unplaced, grow=bool(placed))

    def event(self, job: Job, event: JobEvent, now: float) -> None:
        """Apply one event to a job."""
        try:
            step = launcher.step(job.view, job.run, job.tasks, event, now, self.policy)
        except InvalidTransition as error:
            self.pending.warn(
                "an event that cannot be was dropped", job=job.id, message=error.message, story=str(error.details)
            )
            return
        self._apply(job, step, now)

    def checkpointed(self, job: Job, attempt: int, at: float, now: float) -> None:
        """Record a checkpoint of a job and tell the scheduler, which prefers victims that lose less work."""
        self.event(job, Checkpointed(attempt, at), now)
        self._tell_saved(job)

    def work_reported(self, job: Job, attempt: int, report: WorkReport, now: float) -> None:
        """Record what a job's program says of its work, and tell the scheduler, whose policies read it."""
        self.event(job, WorkReported(attempt, report), now)
        if job.run.report is report:
            numbers = (report.progress, report.throughput, report.gradient_noise, report.batch_size)
            self.world.fold(scheduler.WorkReported(job.id, report.at, *numbers))
            self.pending.jobs.add(job.id)  # what policies read of it is stored with the job
            self.world.plan_wanted |= self.world.planner.policy.reads_reports

    def _tell_saved(self, job: Job) -> None:
        if job.run.checkpointed_at is not None:
            self.world.fold(scheduler.Checkpointed(job.id, job.run.attempt, job.run.checkpointed_at))

    def seek_inputs(self, jobs: Iterable[JobId], until: float) -> None:
        """Keep these jobs out of the queue until their inputs are located, or until a time."""
        for job_id in jobs:
            self.world.seeking[job_id] = until
            self.world.set_timer(until, job_id)
            job = self.world.jobs.get(job_id)
            if job is not None and (unplaced := job.unplaced()):
                self.world.fold(GangWithdrawn(job_id, tuple(unplaced)))

    def inputs_located(self, job_id: JobId, inputs: InputBytes | None) -> None:
        """Take over where a job's inputs are, and queue it, or queue it anew."""
        job = self.world.jobs.get(job_id)
        sought = self.world.seeking.pop(job_id, None) is not None
        if job is None or job.completed:
            return
        if inputs is not None:
            job.run = msgspec.structs.replace(job.run, inputs=inputs)
            self.pending.jobs.add(job_id)
        if sought or inputs is not None:
            self._queue_unplaced(job)

    def seek_no_longer(self, job_id: JobId, now: float) -> None:
        """Queue a job whose inputs were not located in time."""
        until = self.world.seeking.get(job_id)
        if until is not None and until <= now:
            del self.world.seeking[job_id]
            if (job := self.world.jobs.get(job_id)) is not None:
                self._queue_unplaced(job)

    def preempt(self, job: Job, event: Preempted | SuspendRequested, why: PreemptionTerms, now: float) -> None:
        """Preempt or suspend a job or some of its tasks, with a receipt."""
        before = HeldDevices.of(job)
        self.event(job, event, now)
        if why.back_at is not None and isinstance(event, Preempted):
            why = msgspec.structs.replace(why, back_at=max(why.back_at, now + self._grace(job, event)))
        self.receipts.write(self.pending, job, before, why, now)

    def _grace(self, job: Job, event: Preempted) -> float:
        """Seconds of grace of the preempted tasks: the job cannot return earlier."""
        return self.policy.grace_of(job.view) if event.grace_seconds is None else event.grace_seconds

    def engine_event(self, event: Started | Exited | StartRefused, now: float) -> None:
        """Apply an engine's event to its job; attempts of unknown jobs are stopped or forgotten."""
        key = parse_attempt_id(event.attempt)
        job = self.world.jobs.get(key.job)
        if job is not None:
            self.event(job, event, now)
        elif isinstance(event, Exited):
            self.pending.outbox.append((key.job, ForgetTask(event.attempt)))
        elif isinstance(event, Started):
            self.pending.outbox.append((key.job, StopTask(event.attempt, 0.0)))

    def place_lost(self, event: PlaceLost, now: float) -> None:
        """Return a task that has not begun to the queue, because its node or device is gone."""
        key = parse_attempt_id(event.attempt)
        job = self.world.jobs.get(key.job)
        task = job.tasks.get(key.task) if job is not None else None
        if job is None or task is None or task.state is TaskState.RUNNING:
            return
        if job.run.attempt_of(task) == event.attempt:
            self.event(job, Unplaceable((key.task,), event.message), now)

    def noted(self, event: Noted, now: float) -> None:
        """Record a message of the underlying system about an attempt, for users."""
        key = parse_attempt_id(event.attempt)
        if key.job in self.world.jobs:
            often = f" ({event.times} times)" if event.times > 1 else ""
            said = f"{key.task}: {event.reason}{often}: {event.message}"
            data = {"reason": event.reason, "times": event.times}
            self.tell(key.job, now, Fact(TASK_NOTED, said, key.role, key.index, event.attempt, data))

    def ranked(self, found: GangPlacement) -> Placement:
        """A placement with ranks that no other task of the job has."""
        job = self.world.jobs[found.job]
        taken = {task.placement.order for task in job.tasks.values() if task.placement}
        free = (order for order in count() if order not in taken)  # so a task that is placed anew keeps its rank
        orders = [next(free) for _ in found.placement.tasks]
        if all(task.order == order for task, order in zip(found.placement.tasks, orders, strict=True)):
            return found.placement
        tasks = tuple(map(_ranked, found.placement.tasks, orders))
        return msgspec.structs.replace(found.placement, tasks=tasks)

    def placed(self, found: GangPlacement, placement: Placement, now: float) -> None:
        """Tell a job its placement, which cluster and queue know already."""
        job = self.world.jobs[found.job]
        joins = len(self.world.cluster.holds(found.job)) > len(placement.tasks)
        self.event(job, Placed(found.job_attempt, placement, joins), now)
        job.reasons = None
        self.lost_guarantee(placement.demoted, f"job {job.name} of the same virtual cluster comes first", now)

    def lost_guarantee(self, jobs: Iterable[JobId], why: str, now: float) -> None:
        """Tell jobs that they run on without their guarantee."""
        live = [job for job in jobs if job in self.world.jobs]
        taken = self.world.planner.without_guarantee() if live else {}
        for job in live:
            data: dict[str, object] = {"preemptor": taken.get(job, "")}
            self.tell(
                job, now, Fact(GUARANTEE_LOST, f"It continues as a guest, without its guarantee: {why}.", data=data)
            )

    def tell(self, job: JobId, now: float, fact: Fact, actor: str = "") -> None:
        """Add a fact that did not come from a launcher rule."""
        self.pending.tell(job, now, fact, actor)

    def _apply(self, job: Job, step: Step, now: float) -> None:
        before = job.run
        job.run = step.job
        self.pending.jobs.add(job.id)
        self._apply_tasks(job, step.tasks, {end.attempt: end.task for end in step.ended} if step.ended else _NONE)
        self.pending.facts += [FactWrite(job.id, now, fact) for fact in step.facts]
        leaving: list[TaskKey] = []
        for command in step.commands:
            if isinstance(command, RequestPlacement):
                self._queue(job, command.tasks, grow=command.grow)
            elif isinstance(command, ReleasePlacement):
                self._release(job, command.tasks, now)
            else:
                self.pending.outbox.append((job.id, command))
                if isinstance(command, StopTask):
                    leaving.append(parse_attempt_id(command.attempt).task)
        if leaving:
            self._leave(job, tuple(key for key in leaving if key in job.tasks and job.tasks[key].holds))
        if job.run.wake_at != before.wake_at:
            self.world.set_timer(job.run.wake_at, job.id)
        self.receipts.look(self.pending, job, now)
        completed = job.completed
        if (completed or job.run.suspended) and job.id in self.world.queue.nominated:
            self.world.fold(NominationLapsed(job.id))
        if completed:
            self.pending.ended.add(job.id)
            self._completed(job, now)

    def _apply_tasks(
        self, job: Job, changed: Mapping[TaskKey, TaskRun | None], ended: Mapping[AttemptId, TaskRun]
    ) -> None:  # fmt: skip
        """Take over changed tasks, and record their attempts: each that `ended` as it was then, once."""
        recorded = 0
        for key, task in changed.items():
            self.pending.tasks[job.id, key] = task
            before = job.tasks.get(key)
            job.tasks_by_node.change(before, task)
            if before is None or task is None or before.placement is not task.placement or before.holds != task.holds:
                self.world.gangs.forget(job.id)
            if job.task_retries or (task is not None and task.wake_at is not None):
                job.task_retries.change(key, task)
            if task is None:
                job.tasks.pop(key, None)
                continue
            job.tasks[key] = task
            if task.placement is not None:
                attempt = job.run.attempt_of(task)
                recorded += attempt in ended
                self._record_attempt(job, attempt, ended.get(attempt, task))
        if recorded < len(ended):
            for attempt, task in ended.items():
                self._record_attempt(job, attempt, task)

    def _record_attempt(self, job: Job, attempt: AttemptId, task: TaskRun) -> None:
        if not self._recorded:
            return
        completion, placement = task.completion, task.placement
        asked = None
        for role in job.terms.roles:
            if role.role == task.role:
                asked = role
                break
        self.pending.attempts[attempt] = AttemptWrite(
            id=attempt,
            node=placement.node if placement else "",
            devices=placement.devices if placement else (),
            started_at=task.started_at,
            ended_at=task.ended_at,
            code=completion.code if completion else None,
            phrase=completion.phrase if completion else "",
            exit_class=str(completion.exit_class) if completion else "",
            diagnostics=completion.diagnostics if completion else "",
            host=task.host,
            ports=task.ports,
            user=job.user,
            device_millis=placement.device_millis if placement else 0,
            model=self._model_of(placement) if placement and placement.devices else "",
            cpu_millis=asked.cpu_millis if asked else 0,
            memory_bytes=asked.memory_bytes if asked else 0,
        )

    def _model_of(self, placement: TaskPlacement) -> str:
        """The model of the devices of a placement; "" if they are of several, or its node is not known."""
        if not self.world.cluster.names_models:
            return ""
        models = self.world.cluster.device_models(placement.node)
        found = {models.get(index, "") for index in placement.devices}
        return found.pop() if len(found) == 1 else ""

    def _queue_unplaced(self, job: Job) -> None:
        if not job.run.hold and (unplaced := job.unplaced()):
            self._queue(job, unplaced, grow=bool(job.placements()))

    def _queue(self, job: Job, tasks: Iterable[TaskKey], *, grow: bool) -> None:
        if job.id in self.world.seeking:
            return
        running = job.placements() if grow else ()
        for line in job.terms.lines(tasks):
            self.world.fold(GangQueued(_asked(job, line, running)))
        self.world.plan_wanted = True

    def take_turn(self, job: Job, turn: float) -> None:
        """Set the turn of a waiting job in its queue; a higher turn comes first."""
        job.run = msgspec.structs.replace(job.run, turn=turn)
        self.pending.jobs.add(job.id)
        self._queue_unplaced(job)

    def edit(self, job: Job, text: str) -> None:
        """Replace the document of a job that holds nothing; it keeps its waiting time.

        In another queue its turn is reset, because a manager set it relative to the jobs of the old queue.
        """
        queue = job.terms.queue
        job.reread(text)
        job.reasons = None
        self.world.gangs.forget(job.id)
        if job.id in self.world.queue.nominated:
            self.world.fold(NominationLapsed(job.id))
        self.pending.edited.add(job.id)
        self.take_turn(job, job.run.turn if job.terms.queue == queue else 0.0)

    def _release(self, job: Job, tasks: tuple[TaskKey, ...], now: float) -> None:
        self.world.fold(GangWithdrawn(job.id, tasks))
        self.world.fold(TasksReleased(job.id, tasks, now))
        self.world.plan_wanted = True

    def _leave(self, job: Job, tasks: tuple[TaskKey, ...]) -> None:
        """Tell the scheduler which devices will be free soon."""
        if tasks:
            self.world.fold(TasksLeaving(job.id, tasks))

    def _completed(self, job: Job, now: float) -> None:
        for waiting in sorted(self.world.dependents.pop(job.id, ())):
            dependent = self.world.jobs.get(waiting)
            if dependent is not None and not dependent.completed:
                self.dependency_ended(dependent, job, now)

    def dependency_ended(self, job: Job, other: Job, now: float) -> None:
        """Tell a job that a job that it depends on has ended."""
        succeeded = other.run.completion is not None and other.run.completion.succeeded
        needs = [need for need in job.needs if need.job in (other.id, other.name)]
        needs_success = any(need.condition == "succeeded" for need in needs)
        job.waits_for -= {other.id}
        if needs_success and not succeeded:
            self.event(job, DependencyFailed(f"{other.name} did not succeed"), now)
        elif not job.waits_for:
            self.event(job, HoldReleased(), now)
        else:
            self.pending.jobs.add(job.id)  # its line names those that are left


def _ranked(task: TaskPlacement, order: int) -> TaskPlacement:
    return msgspec.structs.replace(task, order=order)


def _asked(job: Job, tasks: Iterable[TaskKey], running: Sequence[TaskPlacement] = ()) -> GangRequest:
    """The scheduler's request for these tasks of a job, waiting or placed."""
    return job.terms.request(
        job.id,
        job.run.attempt,
        tasks,
        user=job.account or job.user,
        created_at=job.created_at,
        groups=job.groups,
        running=running,
        turn=job.run.turn,
        inputs=job.run.inputs,
    )
