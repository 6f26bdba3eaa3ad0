"""Services of jobs in the browser: who may open which, and the tickets and sessions of their visitors."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Final

import msgspec

from corral.frameworks.notebook import PORT as NOTEBOOK
from corral.frameworks.notebook import PURPOSE
from corral.kernel.errors import NotFound, Unauthenticated
from corral.kernel.ids import AttemptId, JobId
from corral.kernel.tokens import derived_secret, job_secret
from corral.model.records import ENDED_PHASES
from corral.model.runs import TaskRun
from corral.model.states import TaskState
from corral.model.store_writes import JobRecord
from corral.model.views import ServicesView, ServiceView
from corral.service.access.job_access import job_resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.jobs.recent import Recent
from corral.service.jobs.service_claims import Claims, fingerprint, read, sign
from corral.service.jobs.task_connections import started_task
from corral.service.people.authentication import Authentication

TICKET_SECONDS: Final = 60.0
"""Seconds in which a ticket must be used."""
SESSION_SECONDS: Final = 12 * 3600.0
"""Most seconds for which a browser may use the services of a job without a further ticket."""
_RECENT_SECONDS: Final = 1.0
"""Seconds for which a stored job, and the port of a running task, are taken as they were read.

Pages ask for tens of files at once. Whether the sign-in is good and may open the job is looked at for each of them.
"""
_SESSION_KEPT_SECONDS: Final = 60.0
"""Seconds for which the signature of a session is taken as it was found; what it allows is looked at each time."""
_SHOWN: Final = 200
"""Running tasks whose services are listed."""


class Ticket(msgspec.Struct, frozen=True):
    """A ticket to one service of a job, which begins a session when it is used."""

    job: JobId
    text: str
    expires_at: float


class Visit(msgspec.Struct, frozen=True):
    """A session that has begun: the value of its cookie, its end, and the service that was asked for."""

    session: str
    expires_at: float
    task: str
    port: str


class Visitor(msgspec.Struct, frozen=True):
    """The account that a session belongs to, while it may open the job."""

    actor: Actor
    record: JobRecord
    expires_at: float


class Reached(msgspec.Struct, frozen=True):
    """A port of a running task that a visitor may use."""

    attempt: AttemptId
    number: int
    host: str
    """The address of the task, which its redirects may name."""
    keeps_path: bool
    """Whether the service was told its path by Corral, and so is given it unchanged."""
    authorization: str = ""
    """The header by which the service knows that Corral let the visitor in."""


class JobServices:
    """The services of jobs, for browsers."""

    def __init__(self, context: Context, authentication: Authentication) -> None:
        self._context = context
        self._store = context.store
        self._authentication = authentication
        self._jobs: Recent[str, JobRecord] = Recent(_RECENT_SECONDS)
        self._ports: Recent[tuple[str, str, int, str], Reached] = Recent(_RECENT_SECONDS)
        self._sessions: Recent[str, Claims] = Recent(_SESSION_KEPT_SECONDS)

    async def all(self, actor: Actor, ref: str) -> ServicesView:
        """The services of a job's running tasks.

        Raises NotFound, Forbidden.
        """
        record, _ = await self._context.job_for(actor, ref, "job.open")
        names = _declared(record)
        if not any(names.values()):
            return ServicesView(())
        page = await self._store.job_tasks(record.id, states=(TaskState.RUNNING.value,), limit=_SHOWN)
        found = [
            ServiceView(f"{task.role}-{task.index}", name, task.ports[name][0])
            for task in page.items
            for name in names.get(task.role, ())
            if task.ports.get(name)
        ]
        return ServicesView(tuple(found))

    async def ticket(self, actor: Actor, ref: str, role: str, index: int, port: str) -> Ticket:
        """Make a ticket to a service of a running task.

        Raises NotFound, Forbidden, Conflict `task-not-running`.
        """
        record, _ = await self._context.job_for(actor, ref, "job.open")
        await self._port(record, role, index, port)
        now = self._context.clock.now()
        claims = Claims(
            record.id, actor.token_id, now + TICKET_SECONDS, secrets.token_urlsafe(16), f"{role}-{index}", port
        )
        text = sign(self._context.key, "service-ticket", claims)
        await self._store.add_login_link(fingerprint(self._context.key, text), actor.user, now, claims.expires_at)
        return Ticket(record.id, text, claims.expires_at)

    async def redeem(self, text: str, job: str) -> Visit:
        """Use up a ticket at the origin of `job`, and begin a session, which is written to the audit log.

        Raises Unauthenticated if the ticket is not good (any more), Forbidden.
        """
        now, key = self._context.clock.now(), self._context.key
        claims = read(key, "service-ticket", text, now)
        if claims is None or claims.job != job:
            raise _bad_ticket()
        try:
            await self._store.use_login_link(fingerprint(key, text), now)
        except Unauthenticated:
            raise _bad_ticket() from None
        actor = await self._authentication.of_token(claims.token)
        record = await self._job(claims.job)
        decision = await self._context.check(actor, "job.open", job_resource(record))
        noted = {"task": claims.task, "port": claims.port}
        await self._context.note(actor, "job.open", job_resource(record), decision, **noted)
        begun = Claims(claims.job, claims.token, now + SESSION_SECONDS, secrets.token_urlsafe(16))
        return Visit(sign(key, "service-session", begun), begun.expires_at, claims.task, claims.port)

    async def visitor(self, session: str, job: str) -> Visitor | None:
        """The visitor of a session of `job`; None if it is not one.

        Raises Unauthenticated when the sign-in behind it has ended, Forbidden when the account may not open the job.
        """
        now = self._context.clock.now()
        known = self._sessions.get(session)
        claims = known or read(self._context.key, "service-session", session, now)
        if claims is None or claims.job != job or now >= claims.expires_at:
            return None
        if known is None:
            self._sessions.put(session, claims)
        actor = await self._authentication.of_token(claims.token)
        record = self._jobs.get(claims.job) or self._jobs.put(claims.job, await self._job(claims.job))
        await self._context.check(actor, "job.open", job_resource(record))
        return Visitor(actor, record, claims.expires_at)

    async def reach(self, visitor: Visitor, role: str, index: int, port: str, *, afresh: bool = False) -> Reached:
        """The port of a running task that a visitor's request is for; read anew if `afresh`.

        Raises NotFound, Conflict `task-not-running`.
        """
        asked = (visitor.record.id, role, index, port)
        found = None if afresh else self._ports.get(asked)
        return found or self._ports.put(asked, await self._reach(visitor.record, role, index, port))

    async def _reach(self, job: JobRecord, role: str, index: int, port: str) -> Reached:
        record, task, number = await self._port(job, role, index, port)
        attempt = record.run.attempt_of(task)
        if record.job_type != "notebook" or task.ports.get(NOTEBOOK, ())[:1] != (number,):
            return Reached(attempt, number, task.host, keeps_path=False)
        token = derived_secret(job_secret(self._context.key, record.id), PURPOSE)
        return Reached(attempt, number, task.host, keeps_path=True, authorization=f"token {token}")

    async def alive(self, jobs: Iterable[JobId]) -> frozenset[JobId]:
        """Which of some jobs are there and not over."""
        found = await self._store.jobs_by_id(list(jobs))
        return frozenset(JobId(job) for job, record in found.items() if record.phase not in ENDED_PHASES)

    async def _job(self, job: JobId) -> JobRecord:
        record = (await self._store.jobs_by_id([job])).get(job)
        if record is None:
            raise NotFound("job-not-found", "The job was removed.")
        return record

    async def _port(self, record: JobRecord, role: str, index: int, port: str) -> tuple[JobRecord, TaskRun, int]:
        names = _declared(record).get(role, ())
        record, task = await started_task(self._store, record, role, index)
        numbers = {str(number): number for name in names for number in task.ports.get(name, ())}
        named = task.ports.get(port, ()) if port in names else ()
        number = named[0] if named else numbers.get(port)
        if number is None:
            given = ", ".join(sorted(names)) or "none"
            raise NotFound("no-such-port", f"The job file gives {role}-{index} no port {port[:100]} (it has: {given}).")
        return record, task, number


class _Named(msgspec.Struct):
    name: str


class _Role(msgspec.Struct):
    name: str
    ports: list[_Named] = []


class _Spec(msgspec.Struct):
    roles: list[_Role]


class _Document(msgspec.Struct):
    spec: _Spec


_DOCUMENT: Final = msgspec.json.Decoder(_Document)
"""Reads only the ports of a job's document: each request asks for them."""


def _declared(record: JobRecord) -> dict[str, tuple[str, ...]]:
    """The names of the ports of each role that the job file declares, with that of a notebook."""
    more = (NOTEBOOK,) if record.job_type == "notebook" else ()
    roles = _DOCUMENT.decode(record.doc).spec.roles
    return {role.name: tuple(dict.fromkeys((*more, *(port.name for port in role.ports)))) for role in roles}


def _bad_ticket() -> Unauthenticated:
    return Unauthenticated("bad-ticket", "This address was used or has expired; open the service from Corral again.")
