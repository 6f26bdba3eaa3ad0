"""The seam through which a tenant takes part when jobs are accepted: its rules are asked at each submission and edit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from corral.model.store_writes import NewJob
from corral.service.actor import Actor
from corral.spec.job import UnifiedJob
from corral.store.cluster_views import Admission


def own_tag_said(prefix: str) -> str:
    """The message to users who set or remove a tag that only the server sets."""
    return f"Tags that begin with {prefix} are the server's own; choose another."


class JobRule(Protocol):
    """A tenant's part in the acceptance of jobs; it returns jobs of other kinds unchanged."""

    own_tags: str
    """Prefix of tags that only the server sets and removes, and by which the tenant identifies jobs; "" for none."""

    async def reader_options(self, actor: Actor, text: bytes | str) -> Mapping[str, Any]:
        """Further arguments of `read_runnable_job` for this text, which `actor` submits."""
        ...

    async def complete(self, actor: Actor, job: UnifiedJob) -> UnifiedJob:
        """The job with what its submitter's account adds to it; called before every check."""
        ...

    def always_waits(self, job: UnifiedJob) -> bool:
        """Whether the job is stored even if no known machine could hold it."""
        ...

    async def admit(self, job: UnifiedJob, admission: Admission) -> UnifiedJob:
        """The job as it is stored, once its queue has taken it.

        Raises the refusal of a job that the tenant does not accept.
        """
        ...

    async def check_edit(self, job: UnifiedJob, admission: Admission) -> None:
        """Check a waiting job that moves to another queue or rises in priority; `job` has the new terms.

        Raises the refusal of new terms that the tenant does not accept.
        """
        ...

    def stored(self, new: NewJob, job: UnifiedJob) -> NewJob:
        """The new job with the fields by which the tenant's lists find it."""
        ...


class JobRules:
    """The rules of all tenants, asked one after the other."""

    def __init__(self) -> None:
        self._rules: list[JobRule] = []

    def add(self, rule: JobRule) -> None:
        """Register a rule, which is asked from then on."""
        self._rules.append(rule)

    def own_tags(self, tag: str) -> str:
        """The prefix for which a tag is one that only the server sets and removes; "" for all other tags."""
        return next((rule.own_tags for rule in self._rules if rule.own_tags and tag.startswith(rule.own_tags)), "")

    async def reader_options(self, actor: Actor, text: bytes | str) -> dict[str, Any]:
        """The further arguments of `read_runnable_job` of all rules."""
        options: dict[str, Any] = {}
        for rule in self._rules:
            options.update(await rule.reader_options(actor, text))
        return options

    async def complete(self, actor: Actor, job: UnifiedJob) -> UnifiedJob:
        """The job with what its submitter's account adds to it."""
        for rule in self._rules:
            job = await rule.complete(actor, job)
        return job

    def always_waits(self, job: UnifiedJob) -> bool:
        """Whether a rule has the job stored even if no known machine could hold it."""
        return any(rule.always_waits(job) for rule in self._rules)

    async def admit(self, job: UnifiedJob, admission: Admission) -> UnifiedJob:
        """The job as it is stored.

        Raises the first refusal.
        """
        for rule in self._rules:
            job = await rule.admit(job, admission)
        return job

    async def check_edit(self, job: UnifiedJob, admission: Admission) -> None:
        """Check the new terms of a job that moves to another queue or rises in priority.

        Raises the first refusal.
        """
        for rule in self._rules:
            await rule.check_edit(job, admission)

    def stored(self, new: NewJob, job: UnifiedJob) -> NewJob:
        """The new job with the fields by which tenants' lists find it."""
        for rule in self._rules:
            new = rule.stored(new, job)
        return new
