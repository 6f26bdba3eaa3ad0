"""OpenPAI's log addresses, which a browser opens without a token: each carries a signature instead.

An address is valid for an hour and for one stream of one attempt of a task, or in version 1 for all its streams. Access
is checked when the address is made. Logs of jobs in OpenPAI's protocol may be read by everybody who signed in, as in
OpenPAI; those of other jobs need the right `job.logs`.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from typing import Final, NamedTuple

from corral.compat.openpai.language.names import JOB_TYPE
from corral.compat.openpai.service.errors import OpenPaiRefusal
from corral.compat.openpai.service.jobs import OpenPaiJobs
from corral.compat.openpai.service.task_views import log_attempt
from corral.kernel.errors import Forbidden
from corral.kernel.ids import AttemptId, parse_attempt_id
from corral.kernel.tokens import derive_key
from corral.service.access.job_access import job_resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.logs.attempt_log import TaskLog
from corral.service.logs.task_logs import TaskLogs
from corral.storage.log_files import STREAMS

SIGNED_SECONDS: Final = 3600
"""Seconds for which an address is valid."""
_PURPOSE: Final = "openpai-log"
_FOLDER: Final = "/"
"""Signed in place of a stream's name; means all streams. No stream has this name."""


class SignedLog(NamedTuple):
    """The content of the address of one stream of a log."""

    attempt: AttemptId
    stream: str
    user: str
    framework: str
    role: str
    expires: int
    signature: str


class SignedFolder(NamedTuple):
    """The content of the address of all streams of a log."""

    attempt: str
    expires: int
    signature: str


class OpenPaiLogs:
    """Signed addresses of task logs, and the logs themselves."""

    def __init__(self, context: Context, jobs: OpenPaiJobs, task_logs: TaskLogs) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock
        self._jobs = jobs
        self._task_logs = task_logs

    async def places(
        self, actor: Actor, user: str, name: str, number: int, role: str, index: int, attempt: int
    ) -> tuple[SignedLog, ...]:
        """Signed addresses of the streams of one attempt of a task."""
        job = await self._jobs.readable(actor, user, name)
        own = job.role_of(role)
        action = "openpai.logs" if job.record.job_type == JOB_TYPE else "job.logs"
        try:
            await self._context.check(actor, action, job_resource(job.record))
        except Forbidden:
            message = f"User {actor.user} is not allowed to do operation on job {job.ref}."
            raise OpenPaiRefusal("ForbiddenUserError", message) from None
        if own is None:
            raise no_log()
        identity = log_attempt(job, number, own, index, attempt)
        if await self._store.attempt_ended(identity) is None:
            raise no_log()
        expires = int(self._clock.now()) + SIGNED_SECONDS
        framework = job.framework
        return tuple(
            SignedLog(identity, stream, user, framework, role, expires, self._signed(identity, stream, expires))
            for stream in STREAMS
        )

    async def folders(self, actor: Actor, user: str, name: str, attempts: Iterable[str]) -> dict[str, SignedFolder]:
        """Signed log folders by attempt of a task; empty if the caller may not read the job's logs."""
        job = await self._jobs.readable(actor, user, name)
        action = "openpai.logs" if job.record.job_type == JOB_TYPE else "job.logs"
        try:
            await self._context.check(actor, action, job_resource(job.record))
        except Forbidden:
            return {}
        expires = int(self._clock.now()) + SIGNED_SECONDS
        return {each: SignedFolder(each, expires, self._signed(each, _FOLDER, expires)) for each in attempts}

    async def in_folder(self, folder: SignedFolder, stream: str) -> list[TaskLog]:
        """The log of one stream in a signed folder; see `openpai_log`."""
        good = hmac.compare_digest(folder.signature, self._signed(folder.attempt, _FOLDER, folder.expires))
        if not good:
            raise OpenPaiRefusal("UnauthorizedUserError", "Your token is invalid.")
        if stream not in STREAMS:
            raise no_log()
        signature = self._signed(folder.attempt, stream, folder.expires)
        return await self.open(folder.attempt, stream, folder.expires, signature)

    async def open(self, attempt: str, stream: str, expires: int, signature: str) -> list[TaskLog]:
        """The log of a signed address, as parts in reading order.

        If the streams are separate, `all` is one after the other. If not, every stream is the same log.
        """
        good = hmac.compare_digest(signature, self._signed(attempt, stream, expires))
        if not good or expires <= self._clock.now() or stream not in STREAMS:
            raise OpenPaiRefusal("UnauthorizedUserError", "Your token is invalid.")
        record = await self._store.find_job(parse_attempt_id(attempt).job)
        if record is None or self._context.logs is None:
            raise no_log()
        identity = AttemptId(attempt)
        kept = await self._task_logs.streams(record, identity)
        parts = (stream,) if stream in kept else kept
        return [await self._task_logs.source(record, identity, part) for part in parts]

    def _signed(self, attempt: str, stream: str, expires: int) -> str:
        said = f"{attempt}\n{stream}\n{expires}".encode()
        return hmac.new(derive_key(self._context.key, _PURPOSE), said, hashlib.sha256).hexdigest()


def no_log() -> OpenPaiRefusal:
    """The refusal for a task that does not exist or has no stored output."""
    return OpenPaiRefusal("NoTaskLogError", "Log of task is not found.")
