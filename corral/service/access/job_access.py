"""A job as the access rules see it, and the actions on it that they allow an actor."""

from __future__ import annotations

from corral.model.store_writes import JobRecord
from corral.service.access.rules import OWN_JOB, Resource, decide
from corral.service.actor import Actor


def allowed_to(actor: Actor, record: JobRecord) -> tuple[str, ...]:
    """The job actions that rules allow `actor`, without their prefix `job.`; the job's state is not considered."""
    resource = job_resource(record)
    return tuple(
        action.removeprefix("job.")
        for action in sorted((OWN_JOB - {"job.explain"}) | {"job.order"})
        if decide(actor, action, resource).allowed
    )


def job_resource(record: JobRecord) -> Resource:
    """The job as a resource for the access rules."""
    owner = "" if record.orphaned else record.user
    return Resource("job", record.id, owner=owner, queue=record.queue, title=record.name)
