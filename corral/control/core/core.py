"""The control core: jobs, cluster, queue and history as one value that inputs and time move forward.

`Core.step` folds inputs through the launcher's rules, plans, and answers with what has to be stored; nothing is done
before that is stored. A core reads no clock, no store and no engine: what it needs is given to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final

import msgspec

from corral.control.core.configuration import Configured
from corral.control.core.inputs import (
    ConfigurationRead,
    CordonsRead,
    Input,
    InputsLocated,
    InputsSought,
    Recovered,
    Underway,
)
from corral.control.core.intents import Intents, IntentsRead, settle
from corral.control.core.job_events import DEPENDENCY, JobEvents
from corral.control.core.lending_ledger import Ledger, Loans
from corral.control.core.machines import Machines, MachinesSeen
from corral.control.core.maintenance import Maintenance
from corral.control.core.pending_writes import LogLine, PendingWrites
from corral.control.core.receipts import Receipts, from_eviction
from corral.control.core.usage_history import UsageHistory
from corral.control.core.waiting_reason import waiting_reason
from corral.control.core.world import Job, World
from corral.kernel.ids import JobId
from corral.kernel.units import devices
from corral.launcher import LaunchPolicy
from corral.model.cordons import Cordon
from corral.model.events import PlaceLost, Preempted, StartRefused, TimePassed
from corral.model.launch import EngineLost, Exited, Noted, Started
from corral.model.phases import Phase, phase
from corral.model.placement import Placement
from corral.model.plan import Eviction, GangPlacement, PartFault, Reasons
from corral.model.requests import GangRequest
from corral.model.store_writes import ControlBatch, JobWrite, ServerEvent
from corral.model.summary import summarize
from corral.scheduler import (
    BuiltinPlanner,
    EndedRecalled,
    EngineUnknown,
    GangNominated,
    GangPlaced,
    JobOver,
    PlanHooks,
    Planner,
    Policy,
    UsageRecalled,
    execute_plan,
    find_planner,
)
from corral.scheduler.policy.future_fairness import Schedule
from corral.scheduler.preemption.over_quota import fragmenting, over_limit
from corral.scheduler.queues.lending import lending, owned_devices
from corral.scheduler.queues.queue_tree import QueueTree

PART_FAILED: Final = "server.policy-part-failed"
"""The kind of the event that tells of a failed part of the policy."""


@dataclass(frozen=True)
class Batch:
    """What one step decided."""

    writes: ControlBatch | None = None
    """To be stored whole or not at all; None: nothing is to be stored."""
    changed: frozenset[JobId] = frozenset()
    """The jobs of which something new is stored."""
    warnings: tuple[LogLine, ...] = ()


class Core:
    """Everything that control knows and decides; one object lives between two recoveries."""

    def __init__(self, recovered: Recovered, launch_policy: LaunchPolicy, machines: Machines, now: float) -> None:
        """`machines` is taken over: it may remember what a core before this one saw of them."""
        self.launch_policy = launch_policy
        self.configured = recovered.configured
        self.machines = machines
        self.world = World(BuiltinPlanner(policy=recovered.configured.policy))
        self.job_events = JobEvents(self.world, launch_policy, Receipts(recovered.receipts))
        self.ledger = Ledger(recovered.ledger)
        self.usage_history = UsageHistory(recovered.usage, recovered.user_usage)
        self.maintenance = Maintenance(self.job_events, machines, self.grace_of)
        self.intents = Intents(self.job_events, recovered.cursor)
        self._plan_again: float | None = None
        self._next_maintenance: float | None = None
        self._owned: tuple[object, dict[str, int]] | None = None
        self._recorded = True
        """Whether somebody reads what it stores of jobs beside their states."""
        self._counted: tuple[QueueTree, int] | None = None
        """The queues, and the cluster's revision, for which loans and past usage were counted last."""
        self._recover(recovered, now)

    def _recover(self, recovered: Recovered, now: float) -> None:
        """Adopt every job as it was stored: what it holds is held, what it waits for is queued."""
        jobs = [Job.from_record(each, recovered.groups.get(each.user, ())) for each in recovered.jobs if each.run.roles]
        self._configure(recovered.configured, now)
        self._close_nodes(recovered.cordons)
        self.world.jobs = {job.id: job for job in jobs}
        for seen in recovered.machines:
            self._see(seen, now)
        for job in sorted(jobs, key=lambda job: job.run.placed_at or inf):  # planners account for gangs in that order
            self.world.set_timer(job.run.wake_at, job.id)
            self.job_events.adopt(job, now)
        self._recall_losses(recovered)
        if recovered.ended_service:
            self.world.fold(EndedRecalled(tuple(recovered.ended_service)))
        self.world.fold(UsageRecalled(tuple(self.usage_history.written.values()), tuple(self.usage_history.of_users)))
        for waiting, preempted_at in self.job_events.receipts.beneficiaries().items():
            if self.world.queue.waiting(waiting) and (self.world.jobs[waiting].run.waits_since or 0.0) <= preempted_at:
                self.world.fold(GangNominated(waiting))
        stored = {
            job: Job.from_record(record, recovered.groups.get(record.user, ()))
            for job, record in recovered.needed.items()
            if job not in self.world.jobs
        }
        for job in jobs:
            if job.run.hold == DEPENDENCY:
                settle(self.job_events, job, stored, now)

    def _recall_losses(self, recovered: Recovered) -> None:
        """Have the planner know when, and to whom, jobs lost their guarantee before this core began."""
        for loss in recovered.losses:
            job = self.world.jobs.get(loss.job)
            if job is not None and loss.at >= (job.run.placed_at or 0.0) - 0.001:
                self.world.fold(loss)

    def underway(self) -> Underway:
        """What this core knows beside what is stored; to be asked between two steps."""
        timers = tuple([(job, at) for at, job in sorted(self.world.timers)])
        history = self.world.cluster.history
        return Underway(
            timers,
            self.world.plan_wanted,
            self._plan_again,
            self._next_maintenance,
            history.contention.remembered(),
            history.prepared if isinstance(history.prepared, Schedule) else None,
        )

    def go_on(self, known: Underway) -> None:
        """Decide from now on as the core that told this, and not as one after a restart."""
        self.world.timers = [(at, job) for job, at in known.timers]
        self.world.plan_wanted, self._plan_again = known.plan_wanted, known.plan_again
        self._next_maintenance = known.next_maintenance
        history = self.world.cluster.history
        history.contention.recall(known.contention)
        history.prepared = known.schedule

    @property
    def policy(self) -> Policy:
        """The scheduling policy in force."""
        return self.configured.policy

    def fork(self, *, unexplained: bool = False, unrecorded: bool = False) -> Core:
        """An independent copy; to be taken between two steps.

        An `unexplained` one decides the same, but finds no reasons why jobs wait, and not when preempted ones return.
        Batches of an `unrecorded` one lack attempts and all of jobs that only lists, or a core after a restart, read.
        """
        twin = object.__new__(Core)
        twin.launch_policy, twin.configured = self.launch_policy, self.configured
        twin.machines, twin.world = self.machines.fork(), self.world.fork()
        twin.world.queue.unexplained |= unexplained
        twin._recorded = self._recorded and not unrecorded
        twin.job_events = JobEvents(
            twin.world, self.job_events.policy, self.job_events.receipts.fork(), recorded=twin._recorded
        )
        twin.ledger = self.ledger.fork()
        twin.usage_history = self.usage_history.fork(self.world.cluster.queues, twin.world.cluster.queues)
        twin.maintenance = Maintenance(twin.job_events, twin.machines, twin.grace_of)
        twin.intents = Intents(twin.job_events, self.intents.cursor)
        twin._owned = twin._counted = None
        twin._plan_again, twin._next_maintenance = self._plan_again, self._next_maintenance
        return twin

    def step(self, inputs: Iterable[Input], now: float) -> Batch:
        """Fold what happened, and what is due, at `now` (seconds since 1970); plan where that may change something."""
        for each in inputs:
            self._fold(each, now)
        for job_id in self.world.due(now):
            self.job_events.seek_no_longer(job_id, now)
            if (job := self.world.jobs.get(job_id)) is not None:
                self.job_events.event(job, TimePassed(), now)
        if self._next_maintenance is not None and self._next_maintenance <= now:
            self._next_maintenance = self.maintenance.look(now)
        if self.world.plan_wanted or (self._plan_again is not None and self._plan_again <= now):
            self._end_histories()
            self._plan(now)
        self._end_histories()
        self._fold_usage(now)
        return self._batch()

    def next_wakeup(self, *, reviews_from: float = -inf) -> float | None:
        """When something is due though no input comes; None: never. A time that is past means at once.

        Plans that are due by time alone count from `reviews_from` on.
        """
        if self.world.plan_wanted:
            return -inf
        found = self.world.next_timer
        review = None if self._plan_again is None else max(self._plan_again, reviews_from)
        for at in (self._next_maintenance, review):
            if at is not None and (found is None or at < found):
                found = at
        return found

    def rests(self, now: float) -> bool:
        """Whether a step at `now` that nothing is told decides nothing: nothing is due, and no loan runs."""
        at = self.next_wakeup()
        return (at is None or at > now) and not self.ledger.running

    @property
    def wants_machines(self) -> bool:
        """Whether the engines should be asked for their nodes: the last task of a removed node is over."""
        return bool(self.machines.removed) and not self.machines.removed <= self.world.held_nodes()

    def lost_guarantees(self) -> list[JobId]:
        """The jobs that run without their guarantee; after a start `Recovered.losses` are about them."""
        return list(self.world.planner.without_guarantee())

    # ---- inputs

    def _fold(self, each: Input, now: float) -> None:
        match each:
            case Started() | Exited() | StartRefused():
                self.job_events.engine_event(each, now)
            case IntentsRead():
                self.intents.fold(each, now)
            case ConfigurationRead(configured=configured):
                self._configure(configured, now)
                self._take_back(now)
            case CordonsRead(cordons=cordons):
                self._close_nodes(cordons)
            case MachinesSeen() | EngineUnknown():
                self._see(each, now)
            case _:
                self._fold_rare(each, now)

    def _fold_rare(self, event: PlaceLost | EngineLost | Noted | InputsSought | InputsLocated, now: float) -> None:
        match event:
            case InputsSought(jobs=jobs, until=until):
                self.job_events.seek_inputs(jobs, until)
            case InputsLocated(job=job_id, inputs=inputs):
                self.job_events.inputs_located(job_id, inputs)
            case PlaceLost():
                self.job_events.place_lost(event, now)
            case EngineLost(engine=engine, reason=reason):
                self.world.fold(EngineUnknown(engine, reason))
            case Noted():
                self.job_events.noted(event, now)

    def _configure(self, configured: Configured, now: float) -> None:
        self.configured = configured
        self.machines.following = configured.following
        self.world.fold(configured.told())
        before, kind = self.world.planner, find_planner(configured.policy.planner)
        self.world.planner = kind.take_over(before, configured.policy, configured.planner, now)
        if self.world.planner is not before:
            why = "the new configuration has no cell of its virtual cluster for it"
            self.job_events.lost_guarantee(self.world.planner.newly_without_guarantee(), why, now)
        self.world.plan_wanted = True

    def _take_back(self, now: float) -> None:
        """Preempt jobs above their queues' new limits or on cells owed to others, if the author asked for it."""
        by, self.intents.preempting = self.intents.preempting, ""
        if by:
            for eviction in (*over_limit(self.world.cluster, now), *fragmenting(self.world.cluster, now)):
                self.evict(eviction, now, by_user=by)

    def _close_nodes(self, cordons: Mapping[str, Cordon]) -> None:
        """Take over which nodes take no new tasks; the tasks on them are looked at in this step."""
        for seen in self.machines.close(cordons):
            self.world.fold(seen)
        self.job_events.policy = msgspec.structs.replace(self.launch_policy, closed_nodes=frozenset(cordons))
        self.world.plan_wanted = True
        self._next_maintenance = 0.0

    def _see(self, seen: MachinesSeen | EngineUnknown, now: float) -> None:
        self.world.fold(seen if isinstance(seen, EngineUnknown) else self.machines.see(seen, now))
        self.world.plan_wanted = True
        self._next_maintenance = 0.0

    # ---- decisions

    def _plan(self, now: float) -> None:
        self.world.plan_wanted = False
        planner = self.world.planner
        proposal = planner.plan(now)
        execute_plan(planner, proposal, now, _InJobs(self, now))
        if proposal.placements and self.machines.tainted:
            self._next_maintenance = now
        self._plan_again = proposal.again_at
        for job_id, reasons in proposal.reasons.items():
            self._explain(JobId(job_id), reasons)
        for fault in proposal.faults:
            self.job_events.pending.server_events.append(ServerEvent(now, PART_FAILED, _fault_message(fault)))

    def evict(self, eviction: Eviction, now: float, *, by_user: str = "") -> None:
        """Preempt a gang. The scheduler assigns its devices to the preemptor once they are free."""
        job = self.world.jobs.get(eviction.job)
        if job is not None:
            eviction = msgspec.structs.replace(eviction, message=self.world.in_names(eviction.message, eviction.job))
            event = Preempted(
                eviction.job_attempt,
                eviction.rule,
                eviction.message,
                eviction.tasks,
                by=eviction.by,
                grace_seconds=self.grace_of(job),
            )
            self.job_events.preempt(job, event, from_eviction(eviction, by_user), now)

    def _explain(self, job_id: JobId, reasons: Reasons) -> None:
        job = self.world.jobs.get(job_id)
        if job is not None:
            job.reasons = self.world.reasons_in_names(reasons, job_id)
            self.job_events.pending.jobs.add(job_id)

    def grace_of(self, job: Job, asked: float | None = None) -> float | None:
        """Seconds of grace of a job's preempted tasks, as `Configured.grace` says."""
        return self.configured.grace(job.terms.queue, self.launch_policy.grace_of(job.view), asked)

    def _loans(self) -> Loans:
        """The devices lent between queues. Owned devices are counted again only after a new configuration."""
        ownership = self.world.cluster.ownership
        if self._owned is None or self._owned[0] is not ownership:
            self._owned = (ownership, owned_devices(ownership))
        return lending(self.world.cluster.queues, self._owned[1])

    def _fold_usage(self, now: float) -> None:
        """Bring loans and past usage up to date; both change with the cluster only, loans that run also with time."""
        cluster = self.world.cluster
        if self._counted == (cluster.queues, cluster.revision) and not self.ledger.running:
            return
        self._counted = (cluster.queues, cluster.revision)
        self.ledger.fold(self.job_events.pending, self._loans(), now)
        self.usage_history.fold(self.job_events.pending, cluster.queues, now)

    # ---- what is stored

    def _end_histories(self) -> None:
        """Have the planner count jobs that are over among the ended ones, before it orders gangs by them.

        What such a job received is stored with it, because the planner then forgets it.
        """
        ended = self.job_events.pending.ended
        for job_id in sorted(ended):  # the order of a set is another one in each process
            job = self.world.jobs.get(job_id)
            if job is not None and not job.completed:
                continue  # it was restarted in the same step
            if job is not None:
                self._keep_served(job)
            self.world.fold(JobOver(job_id))
        ended.clear()

    def _keep_served(self, job: Job) -> None:
        """Store with a job what it received."""
        if not self._recorded:
            return
        served = self.world.cluster.history.served(job.id)
        if served != job.run.served:
            job.run = msgspec.structs.replace(job.run, served=served)

    def _batch(self) -> Batch:
        pending = self.job_events.take_pending()
        warnings = tuple(pending.warnings)
        if pending.empty:
            return Batch(warnings=warnings)
        changed = sorted(pending.jobs)  # the order of a set is another one in each process
        writes = pending.batch(self._job_writes(pending, changed))
        for job_id in changed:
            job = self.world.jobs.get(job_id)
            if job is not None and job.completed:
                del self.world.jobs[job_id]
        return Batch(writes, frozenset(pending.jobs), warnings)

    def _job_writes(self, pending: PendingWrites, changed: Iterable[JobId]) -> tuple[JobWrite, ...]:
        writes = []
        for job_id in changed:
            job = self.world.jobs.get(job_id)
            if job is None or job_id in pending.removed:
                continue
            state = self._record(job) if self._recorded else phase(job.run)
            write = JobWrite(job_id, job.run, state, job.summary, live=not job.completed, guard=job.revision)
            if job_id in pending.edited:
                terms = job.terms
                write = msgspec.structs.replace(write, priority=terms.priority, queue=terms.queue, doc=job.text)
            writes.append(write)
            job.revision += 1
        return tuple(writes)

    def _record(self, job: Job) -> Phase:
        """Bring what lists and a later core read of a job up to date; returns its phase."""
        job.run = job.tasks_by_node.written(job.run)
        if not job.completed:
            self._keep_served(job)
        state = phase(job.run)
        held, waiting = devices(job.tasks_by_node.millis), waiting_reason(job, state, self.world.jobs)
        asked = devices(job.asked_millis()) if job.run.roles else job.summary.devices
        job.summary = summarize(job.summary, job.run, state, waiting, devices=asked, devices_held=held)
        return state


def _fault_message(fault: PartFault) -> str:
    then = "It is switched off until another policy is configured." if fault.last else "A plan was made without it."
    return f"The policy's {fault.part} {fault.name} {fault.message.rstrip('.')}. {then}"


class _InJobs(PlanHooks):
    """Carries out a plan in the jobs, in addition to the planner."""

    def __init__(self, core: Core, now: float) -> None:
        self._core = core
        self._now = now

    def before_placing(self, request: GangRequest, found: GangPlacement) -> Placement:
        return self._core.world.with_input_note(request, self._core.job_events.ranked(found))

    def placed(self, found: GangPlacement, event: GangPlaced) -> None:
        self._core.job_events.placed(found, event.placement, self._now)

    def evict(self, planner: Planner, eviction: Eviction) -> None:
        self._core.evict(eviction, self._now)
