"""What the components of the service share: store, clock, keys, limits, workers, access checks and the audit log."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import structlog

from corral.kernel.clock import Clock
from corral.kernel.errors import CorralError, Forbidden, InvalidInput, NotFound
from corral.kernel.ids import JobId, JobIds
from corral.model.accounts import AuditWrite
from corral.model.store_writes import JobRecord
from corral.service.access.audit_rate_limit import Refusals
from corral.service.access.job_access import job_resource
from corral.service.access.refusal_message import refusal
from corral.service.access.rules import Decision, Resource, decide
from corral.service.actor import Actor
from corral.service.control_client import ControlClient, NoControl
from corral.service.jobs.account_limits import UNBOUNDED, Allowance
from corral.service.logs.log_source import Logs
from corral.service.secret_box import SecretBox
from corral.service.stream_expiry import OpenStreams
from corral.storage.code_archives import BlobStore
from corral.store import Store
from corral.workers.pool import LimitExceeded, Workers

log = structlog.get_logger()
Answer = TypeVar("Answer")


class Context:
    """The dependencies and settings of the service's components, and the checks that all of them make."""

    def __init__(
        self,
        store: Store,
        *,
        key: bytes,
        clock: Clock,
        control: ControlClient | None = None,
        blobs: BlobStore | None = None,
        caches: BlobStore | None = None,
        profiles: BlobStore | None = None,
        logs: Logs | None = None,
        token_days: float = 90.0,
        fresh_minutes: float = 10.0,
        code_limit: int = 512 * 1024**2,
        several_users: bool = True,
        workers: Workers | None = None,
        folder: Path | None = None,
        allowance: Allowance = UNBOUNDED,
    ) -> None:
        """`blobs` has archives of code, `caches` bundles of compiled code, `profiles` those of jobs. `folder` is the
        data folder, whose disk is checked for free space; None checks no disk.
        """
        self.store = store
        self.clock = clock
        self.secret_box = SecretBox(key)
        self.control: ControlClient = control or NoControl()
        self.blobs = blobs
        self.caches = caches
        self.profiles = profiles
        self.logs = logs
        self.key = key
        self.token_days = token_days
        self.fresh_minutes = fresh_minutes
        self.streams = OpenStreams(store, clock)
        self.code_limit = code_limit
        self.several_users = several_users
        self.workers = workers or Workers()
        self.folder = folder
        self.allowance = allowance
        self._refusals = Refusals()
        self._ids = JobIds(secrets.randbits)
        self._background: set[asyncio.Task[None]] = set()
        self._closers: list[Callable[[], Awaitable[None]]] = []

    async def check(
        self, actor: Actor, action: str, resource: Resource, *, by: Actor | None = None, **detail: Any
    ) -> Decision:
        """Check that a rule allows the action; a refusal is written to the audit log.

        `by` is the caller where that is not `actor`. Raises Forbidden naming the rule.
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
        """Build an audit-log line, to be stored together with the change that it records."""
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
        """Write a line to the audit log."""
        await self.store.add_audit(self.line(actor, action, resource, decision, **detail))

    async def find(self, actor: Actor, ref: str) -> JobRecord:
        """Find the job that `ref` names for this actor, whose own jobs come first.

        Raises NotFound `job-not-found`.
        """
        record = await self.store.find_job(ref, actor.user)
        if record is None and "~" not in ref:
            record = await self.store.find_job(ref, None)
        if record is None:
            raise NotFound("job-not-found", f"There is no job {ref[:100]}; `corral ls` lists them.")
        return record

    async def job_for(self, actor: Actor, ref: str, action: str) -> tuple[JobRecord, Decision]:
        """Find a job and check that `actor` may do `action` to it.

        Raises NotFound, Forbidden.
        """
        record = await self.find(actor, ref)
        return record, await self.check(actor, action, job_resource(record))

    def new_job_id(self) -> JobId:
        """An id for a new job; ids made later sort after it."""
        return self._ids.next(int(self.clock.now() * 1000))

    async def run_in_worker(self, inline: bool, function: Callable[..., Answer], *arguments: Any) -> Answer:
        """Call a module-level function: in this process if the work is `inline`, else in a worker.

        Raises the function's exception, InvalidInput `too-much-work` beyond a worker's limits, and the exceptions of
        `Workers.check_room`.
        """
        if inline:
            return function(*arguments)
        try:
            return await self.workers.call(function, *arguments)
        except LimitExceeded as error:
            raise InvalidInput("too-much-work", f"This is more than the server works on at once: {error}.") from None

    def run_in_background(self, work: Any) -> None:
        """Run `work` in the background, after the answer; a CorralError is logged."""
        task = asyncio.create_task(_logged(work))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def at_close(self, closer: Callable[[], Awaitable[None]]) -> None:
        """Have `closer` called when the service is closed, before what all components share."""
        self._closers.append(closer)

    async def close(self) -> None:
        """Call the closers, close the streams, wait for background work, and end the workers."""
        for closer in self._closers:
            await closer()
        await self.streams.close()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self.workers.close()


def json_size(document: Any) -> int:
    """The size of a document in bytes, as JSON."""
    return len(msgspec.json.encode(document))


async def _logged(work: Any) -> None:
    try:
        await work
    except CorralError as error:
        log.warning("left undone", code=error.code, message=error.message)
