"""The seam of planners: whoever decides where and when gangs run folds events, plans, explains, forks and hashes.

Control, the forecast, benchmarks and tests hold a planner and know no kind of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from corral.kernel.ids import JobId, TaskKey
from corral.model.configuration import Configuration
from corral.model.plan import Plan, Reasons
from corral.model.requests import GangRequest
from corral.model.start_estimates import Change
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.events import PlannerEvent
from corral.scheduler.explain.question import Said, as_it_is
from corral.scheduler.policy.policy import Policy
from corral.scheduler.queues.waiting_queue import Queue
from corral.scheduler.views.cell_owners import Owners


class Planner(Protocol):
    """Decides where and when gangs run, and holds all state that it decides on.

    The state changes only by `fold`. Every other method leaves it bit for bit as it is: `digest` is the same before and
    after. Times are in seconds since 1970.
    """

    cluster: Cluster
    """The machines and what runs on them; read it, but fold events here."""
    queue: Queue
    """The waiting gangs; read it, but fold events here."""
    policy: Policy
    """The policy in force; it may be replaced between two plans."""

    @property
    def revision(self) -> tuple[int, ...]:
        """Return counters that differ after each event that changed something."""
        ...

    def fold(self, event: PlannerEvent) -> None:
        """Fold one committed event into everything that it concerns.

        Raises Conflict when a placement gives away a device that is held: the events do not belong together.
        """
        ...

    def plan(self, now: float) -> Plan:
        """Return the gangs to start now, the gangs to evict, and the reasons why others wait."""
        ...

    def explain(self, job: JobId, now: float) -> Reasons | None:
        """Return why a job waits, with current figures; None if it does not wait."""
        ...

    def explain_new(self, request: GangRequest, now: float) -> Reasons | None:
        """Return why a gang would wait if it were queued now; the code `starts-now` says that it would not."""
        ...

    def could_ever_fit(self, request: GangRequest) -> Reasons | None:
        """Return why a gang could not start even if nothing ran; None if it could."""
        ...

    def smallest_changes(self, job: JobId, reasons: Reasons, now: float, said: Said = as_it_is) -> tuple[Change, ...]:
        """Return the smallest changes that would start a waiting job now; `reasons` are the result of `explain`."""
        ...

    def likely_back(self, job: JobId, tasks: Collection[TaskKey], now: float) -> float | None:
        """Return when a gang that must leave these tasks' nodes fits again; None if unknown."""
        ...

    def owners_of(self, engine: str) -> Owners | None:
        """Return who owns an engine's cells; None if nobody owns any."""
        ...

    def without_guarantee(self) -> Mapping[JobId, str]:
        """Return the jobs that run on without a guarantee that they had, each with the gang that took it ("": unknown)."""
        ...

    def newly_without_guarantee(self) -> tuple[JobId, ...]:
        """Return those of them that lost it when this planner took over from another."""
        ...

    def fork(self) -> Planner:
        """Return an independent copy, which decides as this one would; its caches are kept."""
        ...

    def digest(self) -> str:
        """Return a hash of everything that later decisions depend on."""
        ...

    def consistent(self) -> bool:
        """Return whether all indexes equal a rebuild from what they were made of, for tests and audits."""
        ...


class PlannerKind(Protocol):
    """A kind of planner, found by its name in the entry point group `corral.planners`; a class can be one."""

    def settings(self, configuration: Configuration) -> object:
        """Return what this kind reads of the documents beside queues and policy; equal results change nothing.

        Raises InvalidInput when it cannot work with these documents.
        """
        ...

    def take_over(self, before: Planner, policy: Policy, settings: object, now: float) -> Planner:
        """Return a planner of this kind with the cluster and queue of another, which must not be used any more.

        `before` itself may be returned if it is of this kind.
        """
        ...
