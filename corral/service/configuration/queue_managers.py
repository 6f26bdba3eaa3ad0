"""Operations of queue managers: reorder waiting jobs, and limit what members hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from corral.kernel.errors import Conflict, InvalidInput, NotFound
from corral.model.configuration import canonical, read_configuration, writes_default
from corral.model.document_revisions import DocumentChange
from corral.model.store_writes import IntentKind, JobRecord
from corral.model.views import JobDetail
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.configuration.documents import ConfigurationDocuments
from corral.service.context import Context
from corral.service.jobs.job_commands import JobCommands
from corral.spec.errors import path_text
from corral.spec.queue import ManagerLimits, QueueDocument

PLACES: Final = ("first", "last", "before", "own")


class QueueLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The most that may be held in a queue, by resource: by all its jobs, by one user's, by one group's."""

    limit: dict[str, str] = {}
    user_limit: dict[str, str] = {}
    group_limit: dict[str, str] = {}


class QueueManagers:
    """Operations for managers of queues."""

    def __init__(self, context: Context, job_commands: JobCommands, configuration: ConfigurationDocuments) -> None:
        self._context = context
        self._store = context.store
        self._job_commands = job_commands
        self._configuration = configuration

    async def order(self, actor: Actor, ref: str, place: str, before: str = "") -> JobDetail:
        """Move a waiting job within its queue: `first`, `last`, `before` another job, or back to its `own` place.

        Raises Conflict `job-not-waiting`, `other-queue`, `order-across-queues`; InvalidInput `bad-place`.
        """
        record, decision = await self._context.job_for(actor, ref, "job.order")
        if place not in PLACES or (place == "before") != bool(before):
            message = "Say where the job goes: first, last, own, or before another job."
            raise InvalidInput("bad-place", message)
        _refuse_unless_waiting(record)
        await self._check_policy(actor, record)
        data: dict[str, Any] = {"place": place, "queue": record.queue}
        if before:
            other = await self._context.find(actor, before)
            _refuse_unless_waiting(other)
            if other.queue != record.queue:
                message = f"{other.name} waits in queue {other.queue}, and {record.name} in queue {record.queue}."
                raise Conflict("other-queue", message)
            if other.id == record.id:
                raise InvalidInput("bad-place", f"{record.name} cannot come before itself; name another job.")
            data |= {"before": other.id, "beforeName": other.name}
        return await self._job_commands.intend(actor, record, "job.order", IntentKind.ORDER, data, decision)

    async def _check_policy(self, actor: Actor, record: JobRecord) -> None:
        """Require an administrator where the jobs of all queues wait in one order.

        Raises Conflict `order-across-queues`.
        """
        if actor.is_admin:
            return
        documents = await self._store.all_documents()
        configured = await self._context.run_in_worker(False, read_configuration, documents.revisions)
        policy = configured.policy
        chosen = (policy.preset or policy.order) if policy is not None else "fair"
        if chosen == "fair" or (chosen == "hived" and record.priority >= 0) or len(configured.queues) == 1:
            return
        message = (
            f"The policy {chosen} has the jobs of all queues wait in one order, so only administrators change it; "
            "managers do under the policy fair."
        )
        raise Conflict("order-across-queues", message)

    async def set_limits(self, actor: Actor, queue: str, limits: QueueLimits, *, dry_run: bool = False) -> QueueLimits:
        """Set the limits of a queue's members, below the queue's own limits; a resource that is not named has none.

        Raises NotFound `queue-not-found`, InvalidInput `above-queue-limit`, Conflict `queue-without-document` or
        `guarantee-broken`.
        """
        decision = await self._context.check(actor, "queue.limit", Resource("queue", queue, queue=queue))
        documents = await self._store.all_documents()
        configured = await self._context.run_in_worker(False, read_configuration, documents.revisions)
        found: QueueDocument | None = configured.queues.get(queue)
        if found is None:
            raise NotFound("queue-not-found", f"There is no queue {queue[:100]}; `corral queues` lists them.")
        own = any(each.kind == "Queue" and each.name == queue for each in documents.revisions)
        implied = queue == "default" and not any(map(writes_default, configured.clusters.values()))
        if not own and not implied:
            message = (
                f"The queue {queue} is a part of a Cluster document; give it a Queue document first (corral apply)."
            )
            raise Conflict("queue-without-document", message)
        changed = found.model_copy(update={"manager_limits": _limits(limits)})
        above = changed.limit_findings()
        if above:
            said = "; ".join(f"{path_text(path)}: {what}" for path, what in above[:10])
            raise InvalidInput("above-queue-limit", f"Managers set limits below the queue's own. {said}.")
        guard = next((each.revision for each in documents.revisions if (each.kind, each.name) == ("Queue", queue)), 0)
        note = f"limits by {actor.user}"
        change = DocumentChange("Queue", queue, canonical(changed), guard, note)
        await self._configuration.change(
            actor, "queue.limit", [change], dry_run=dry_run, preempt=False, decision=decision
        )
        return limits

    async def limits(self, actor: Actor, queue: str) -> QueueLimits:
        """The limits that managers of a queue have set.

        Raises NotFound `queue-not-found`.
        """
        await self._context.check(actor, "queue.read", Resource("queue", queue, queue=queue))
        documents = await self._store.all_documents()
        configured = await self._context.run_in_worker(False, read_configuration, documents.revisions)
        found = configured.queues.get(queue)
        if found is None:
            raise NotFound("queue-not-found", f"There is no queue {queue[:100]}; `corral queues` lists them.")
        said = found.manager_limits
        return QueueLimits(dict(said.limit), dict(said.user_limit), dict(said.group_limit))


def _limits(limits: QueueLimits) -> ManagerLimits:
    told: Mapping[str, dict[str, str]] = {
        "limit": limits.limit,
        "userLimit": limits.user_limit,
        "groupLimit": limits.group_limit,
    }
    try:
        return ManagerLimits.model_validate(told)
    except ValueError as error:
        first = error.errors()[0] if hasattr(error, "errors") else {}
        where = ".".join(str(each) for each in first.get("loc", ()))
        raise InvalidInput("bad-limits", f"{where}: {first.get('msg', 'is not an amount')}."[:500]) from None


def _refuse_unless_waiting(record: JobRecord) -> None:
    if record.phase != "waiting":
        message = f"Job {record.name} does not wait ({record.phase}); only waiting jobs can be reordered."
        raise Conflict("job-not-waiting", message)
