"""Why: every part of the service decides, refuses and writes the audit log in the same way."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import msgspec
import structlog

from corral.kernel.clock import Clock
from corral.kernel.errors import CorralError, Forbidden, InvalidInput, NotFound, Unavailable
from corral.kernel.ids import JobIds
from corral.model.accounts import AuditWrite
from corral.model.writes import JobRecord
from corral.service.actor import Actor
from corral.service.allowance import UNBOUNDED, Allowance
from corral.service.logs import Logs
from corral.service.open_streams import OpenStreams
from corral.service.refusal_words import refusal
from corral.service.refusals import Refusals
from corral.service.rules import OWN_JOB, Decision, Resource, decide
from corral.service.seal import Sealer
from corral.storage.blobs import BlobStore
from corral.store import Store
from corral.workers.pool import PastLimits, Workers

log = structlog.get_logger()
Answer = TypeVar("Answer")
LIGHT: Final = 16 * 1024
"""Bytes of a document that front reads itself, in less time than it takes to hand it to a worker."""


class ControlDoor(Protocol):
    """Questions that only control can answer."""

    async def ask(self, path: str, body: Any = None) -> Any:
        """The JSON answer of control to a GET (or, with a body, a POST) of `path`.

        Raises Unavailable when no control answers.
        """
        ...


class NoControl:
    """The door of a server without control: everything it is asked is unavailable."""

    async def ask(self, path: str, body: Any = None) -> Any:
        """Refuse.

        Raises Unavailable.
        """
        raise Unavailable("no-control", "The scheduler does not answer; try again in a moment.", retry_after=2)


class ServiceBase:
    """What every part of the service stands on."""

    def __init__(
        self,
        store: Store,
        *,
        key: bytes,
        clock: Clock,
        door: ControlDoor | None = None,
        blobs: BlobStore | None = None,
        logs: Logs | None = None,
        token_days: float = 90.0,
        fresh_minutes: float = 10.0,
        code_limit: int = 512 * 1024**2,
        several_users: bool = True,
        openpai_fs_uri: str = "",
        workers: Workers | None = None,
        folder: Path | None = None,
        allowance: Allowance = UNBOUNDED,
    ) -> None:
        """`folder` is the data folder, whose disk is looked at; None looks at none."""
        self.store = store
        self.clock = clock
        self.sealer = Sealer(key)
        self.door: ControlDoor = door or NoControl()
        self.blobs = blobs
        self.logs = logs
        self.key = key
        self.token_days = token_days
        self.fresh_minutes = fresh_minutes
        self.streams = OpenStreams(store, clock)
        self.code_limit = code_limit
        self.several_users = several_users
        self.openpai_fs_uri = openpai_fs_uri
        self.workers = workers or Workers()
        self._refusals = Refusals()
        self.folder = folder
        self.allowance = allowance
        self._ids = JobIds(secrets.randbits)
        self._background: set[asyncio.Task[None]] = set()

    async def check(
        self, actor: Actor, action: str, resource: Resource, *, by: Actor | None = None, **detail: Any
    ) -> Decision:
        """Refuse what no rule allows, and note the refusal; `by` is who asked where that is not `actor`.

        Raises Forbidden naming the rule.
        """
        decision = decide(actor, action, resource)
        if not decision.allowed:
            asked = by or actor
            if asked.user != actor.user:
                detail["of"] = actor.user
            left = self._refusals.left(f"{asked.kind}:{asked.job or asked.user}", self.clock.now())
            if left is not None:
                await self.note(asked, action, resource, decision, **detail, **left)
            raise Forbidden("not-allowed", refusal(actor, action, resource, decision.rule), rule=decision.rule)
        return decision

    def line(self, actor: Actor, action: str, resource: Resource, decision: Decision, **detail: Any) -> AuditWrite:
        """A line of the audit log, to be stored with what it tells of."""
        return AuditWrite(
            self.clock.now(),
            f"job:{actor.job}" if actor.kind == "job" else actor.user,
            action,
            f"{resource.kind}:{resource.name}" if resource.name else resource.kind,
            decision.rule,
            decision.allowed,
            detail,
        )

    async def note(self, actor: Actor, action: str, resource: Resource, decision: Decision, **detail: Any) -> None:
        """Write a line of the audit log."""
        await self.store.add_audit(self.line(actor, action, resource, decision, **detail))

    async def find(self, actor: Actor, ref: str) -> JobRecord:
        """The job that `ref` names for this actor.

        Raises NotFound.
        """
        record = await self.store.find_job(ref, actor.user)
        if record is None and "~" not in ref:
            record = await self.store.find_job(ref, None)
        if record is None:
            raise NotFound("job-not-found", f"There is no job {ref[:100]}; `corral ls` lists them.")
        return record

    async def job_for(self, actor: Actor, ref: str, action: str) -> tuple[JobRecord, Decision]:
        """The job, once `actor` may do `action` to it.

        Raises NotFound, Forbidden.
        """
        record = await self.find(actor, ref)
        return record, await self.check(actor, action, job_resource(record))

    async def aside(self, light: bool, function: Callable[..., Answer], *arguments: Any) -> Answer:
        """What a function of a module gives: called here where that is `light` work, else by a worker.

        Raises what the function does, InvalidInput `too-much-work`, and Unavailable `busy` when all workers are.
        """
        if light:
            return function(*arguments)
        try:
            return await self.workers.call(function, *arguments)
        except PastLimits as error:
            raise InvalidInput("too-much-work", f"This is more than the server works on at once: {error}.") from None

    def behind(self, work: Any) -> None:
        """Run `work` after the answer; a failure is logged."""
        task = asyncio.create_task(_logged(work))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def close(self) -> None:
        """Wait for what runs behind answers, and end the workers."""
        await self.streams.close()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self.workers.close()


def weight(document: Any) -> int:
    """The bytes of a document that is data already."""
    return len(msgspec.json.encode(document))


async def _logged(work: Any) -> None:
    try:
        await work
    except CorralError as error:
        log.warning("left undone", code=error.code, message=error.message)


def allowed_to(actor: Actor, record: JobRecord) -> tuple[str, ...]:
    """What `actor` may do with a job, whatever state it is in: the words after `job.` in the actions."""
    resource = job_resource(record)
    return tuple(
        action.removeprefix("job.")
        for action in sorted((OWN_JOB - {"job.explain"}) | {"job.order"})
        if decide(actor, action, resource).allowed
    )


def job_resource(record: JobRecord) -> Resource:
    """A job as the rules see it."""
    owner = "" if record.orphaned else record.user
    return Resource("job", record.id, owner=owner, queue=record.queue, title=record.name)
