"""Why: services and notebooks that are async already want the same calls without threads; here they go over httpx2."""

# The answers are JSON, checked by the API's own tests; mypy is told their shapes here and nowhere else.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import httpx2

from corral.client import calls, config
from corral.client.exec import AsyncExecStream
from corral.client.transport import checked_url, why_unreachable
from corral.kernel.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from types import TracebackType

    from corral.client.types import Event, Job, Page, Record

ENDED = frozenset({"succeeded", "failed", "stopped"})
"""The states of a job that is over."""


class AsyncClient:
    """Corral's API as methods. Without arguments it talks to the server one is signed in to.

    Every method raises the errors of `corral.kernel.errors` that the server answered with, and Unavailable when it does
    not answer. Use it as a context manager, or call `close`. Not to be shared between threads.
    """

    def __init__(self, url: str = "", token: str = "", *, ca: str = "", timeout: float = 30.0) -> None:
        if not url:
            here = config.current()
            url, token, ca = here.url, token or here.token, ca or here.ca
        self.url = checked_url(url)
        self.token = token
        self.ca = ca
        self._http = httpx2.AsyncClient(base_url=self.url, verify=_trust(ca), timeout=timeout, trust_env=False)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    # -- session

    async def version(self) -> Record:
        """The server's version and features."""
        return await self._ask(calls.call("GET", "/version"))

    async def login(self, *, link: str = "", user: str = "", password: str = "") -> Record:
        """Sign in with a one-time link's token, or with user and password; this client uses the new token from then."""
        data = {"link": link} if link else {"user": user, "password": password}
        signed = await self._ask(calls.call("POST", "/login", data=data))
        self.token = signed["token"]
        return signed

    async def logout(self) -> None:
        """Revoke this client's token."""
        await self._ask(calls.call("POST", "/logout"))

    async def me(self) -> Record:
        """Who one is."""
        return await self._ask(calls.call("GET", "/me"))

    # -- jobs

    async def submit(
        self,
        text: str | bytes,
        *,
        parameters: Mapping[str, str] | None = None,
        idempotency_key: str = "",
        wait_for_capacity: bool = False,
        dry_run: bool = False,
        no_image: bool = False,
        code: str = "",
    ) -> Job:
        """Submit a job file (YAML or JSON, short or canonical); a dry run answers what would happen instead."""
        return await self._ask(
            calls.submit(
                text,
                parameters=parameters,
                idempotency_key=idempotency_key,
                wait_for_capacity=wait_for_capacity,
                dry_run=dry_run,
                no_image=no_image,
                code=code,
            )
        )

    async def validate(self, text: str | bytes, *, parameters: Mapping[str, str] | None = None) -> Record:
        """Everything that is wrong with a job file, or its canonical form."""
        return await self._ask(calls.validate(text, parameters=parameters))

    async def jobs(
        self,
        *,
        state: Sequence[str] = (),
        user: Sequence[str] = (),
        queue: Sequence[str] = (),
        q: str = "",
        tag: str = "",
        job_type: str = "",
        order: str = "",
        limit: int = 50,
        after: str = "",
    ) -> Page[Job]:
        """A page of jobs, newest first."""
        return await self._ask(
            calls.list_jobs(
                state=state,
                user=user,
                queue=queue,
                q=q,
                tag=tag,
                job_type=job_type,
                order=order,
                limit=limit,
                after=after,
            )
        )

    async def history(self, *, user: str = "", limit: int = 50, after: str = "") -> Page[Job]:
        """A page of the lines that removed jobs have left, the latest job first."""
        return await self._ask(calls.history(user=user, limit=limit, after=after))

    async def job(self, ref: str) -> Job:
        """One job, by id, name, or USER~NAME."""
        return await self._ask(calls.call("GET", calls.job_path(ref)))

    async def document(self, ref: str) -> Record:
        """A job's canonical document."""
        return await self._ask(calls.call("GET", calls.job_path(ref, "document")))

    async def tasks(
        self, ref: str, *, role: str = "", state: str = "", limit: int = 100, after: str = ""
    ) -> Page[Record]:
        """A page of a job's tasks."""
        query = {"role": role, "state": state, "limit": limit, "after": after}
        return await self._ask(calls.call("GET", calls.job_path(ref, "tasks"), query))

    async def attempts(self, ref: str, role: str, index: int, *, limit: int = 100, after: str = "") -> Page[Record]:
        """A page of the runs of one task."""
        query = {"limit": limit, "after": after}
        return await self._ask(calls.call("GET", calls.job_path(ref, "tasks", role, index, "attempts"), query))

    async def job_events(self, ref: str, *, limit: int = 200, after: str = "") -> Page[Event]:
        """A page of what happened to a job."""
        return await self._ask(calls.call("GET", calls.job_path(ref, "events"), {"limit": limit, "after": after}))

    async def placement(self, ref: str, *, limit: int = 500, after: str = "") -> Page[Record]:
        """A page of where a job's tasks run."""
        return await self._ask(calls.call("GET", calls.job_path(ref, "placement"), {"limit": limit, "after": after}))

    async def explain(self, ref: str) -> Record:
        """Why a job stands where it stands."""
        return await self._ask(calls.call("GET", calls.job_path(ref, "explain")))

    async def stop(self, ref: str) -> Job:
        """End a job."""
        return await self._ask(calls.call("POST", calls.job_path(ref, "stop")))

    async def restart(self, ref: str) -> Job:
        """Begin a job anew."""
        return await self._ask(calls.call("POST", calls.job_path(ref, "restart")))

    async def suspend(self, ref: str) -> Job:
        """End a job with its checkpoint signal, and hold it until it is resumed."""
        return await self._ask(calls.call("POST", calls.job_path(ref, "suspend")))

    async def resume(self, ref: str) -> Job:
        """Let a suspended job go on."""
        return await self._ask(calls.call("POST", calls.job_path(ref, "resume")))

    async def receipts(
        self, ref: str = "", *, queue: str = "", since: str = "", limit: int = 100, after: str = ""
    ) -> Page[Record]:
        """A page of the receipts for what had to yield: of one job, of a queue, or of all, the latest first."""
        path = calls.job_path(ref, "receipts") if ref else "/receipts"
        query = {"limit": limit, "after": after} | ({} if ref else {"queue": queue, "since": since})
        return await self._ask(calls.call("GET", path, query))

    async def scale(self, ref: str, replicas: int, *, role: str = "") -> Job:
        """Set how many replicas an elastic job asks for."""
        return await self._ask(
            calls.call("POST", calls.job_path(ref, "scale"), data={"replicas": replicas, "role": role})
        )

    async def delete(self, ref: str, *, stop: bool = False) -> None:
        """Remove an ended job; with `stop` a running one is stopped first."""
        await self._ask(calls.call("DELETE", calls.job_path(ref), {"stop": stop}))

    async def wait(self, ref: str, *, timeout: float | None = None, tell: Callable[[Job], None] | None = None) -> Job:
        """Wait until a job has ended; `tell` is called with the job whenever something happened to it.

        Raises TimeoutError after `timeout` seconds.
        """
        until = None if timeout is None else time.monotonic() + timeout
        job = await self.job(ref)
        while True:
            try:
                async for event in self._feed(job=job["id"], timeout=60.0):
                    if event is None or event["kind"].startswith("job."):
                        job = await self.job(job["id"])
                        if tell is not None:
                            tell(job)
                        if job["state"] in ENDED:
                            return job
                    if until is not None and time.monotonic() > until:
                        raise TimeoutError(f"{job['name']} has not ended in {timeout:g} seconds; it goes on.")
            except Unavailable:
                if until is not None and time.monotonic() > until:
                    raise
                await asyncio.sleep(1.0)  # the server is away; the job is not

    # -- logs and events

    def log(
        self,
        ref: str,
        role: str = "",
        index: int = 0,
        *,
        follow: bool = False,
        tail: int | None = None,
        stream: str = "",
        attempt: str = "",
        offset: int = 0,
        prefix: bool = True,
    ) -> AsyncIterator[bytes]:
        """What a task printed, in pieces as they come; without a role what all tasks printed, by line."""
        if role:
            query: Record = {"stream": stream, "attempt": attempt, "offset": offset or ""}
        else:
            query = {"prefix": "" if prefix else "false"}
        path = calls.log_path(ref, role, index, follow=follow, tail=tail, **query)
        return self._stream(calls.Call("GET", path), timeout=None)

    async def events(
        self, *, after: int | None = None, job: str = "", timeout: float | None = None
    ) -> AsyncIterator[Event]:
        """What happens, as it happens (every job's, or one job's), from after event `after`, or from now on."""
        async for event in self._feed(after=after, job=job, timeout=timeout):
            if event is not None:
                yield event

    # -- code

    async def has_code(self, digest: str) -> bool:
        """Whether an archive is on the server already."""
        try:
            await self._ask(calls.call("HEAD", f"/blobs/code/{digest}"))
        except NotFound:
            return False
        return True

    async def put_code(self, pieces: AsyncIterable[bytes], size: int) -> Record:
        """Upload a code archive (tar.gz) of `size` bytes."""
        made = calls.call("PUT", "/blobs/code", content_type="application/gzip", content_length=str(size))
        try:
            response = await self._http.request(
                "PUT", made.path, content=pieces, headers=self._headers(made), timeout=None
            )
        except httpx2.TransportError as error:
            raise _unreachable(self.url, error) from None
        calls.raise_for(response.status_code, response.content)
        answer: Record = response.json()
        return answer

    def exec(self, ref: str, role: str, index: int, command: Sequence[str], *, tty: bool = False) -> AsyncExecStream:
        """Run a command inside a running task; use the stream as an async context manager."""
        query = {"cmd": list(command), "tty": tty}
        path = calls.call("GET", calls.job_path(ref, "tasks", role, index, "exec"), query).path
        return AsyncExecStream(self.url + path, self.token, _trust(self.ca))

    # -- cluster

    async def nodes(self, *, limit: int = 200, after: str = "") -> Page[Record]:
        """A page of the machines."""
        return await self._ask(calls.call("GET", "/nodes", {"limit": limit, "after": after}))

    async def node(self, name: str) -> Record:
        """One machine, by ENGINE/NODE."""
        return await self._ask(calls.call("GET", f"/nodes/{name}"))

    async def devices(self, *, limit: int = 200, after: str = "") -> Page[Record]:
        """A page of the accelerators."""
        return await self._ask(calls.call("GET", "/devices", {"limit": limit, "after": after}))

    async def cluster(self) -> Record:
        """The tree of cells."""
        return await self._ask(calls.call("GET", "/cluster"))

    async def queues(self, *, limit: int = 200, after: str = "") -> Page[Record]:
        """A page of the queues."""
        return await self._ask(calls.call("GET", "/queues", {"limit": limit, "after": after}))

    async def queue(self, name: str) -> Record:
        """One queue."""
        return await self._ask(calls.call("GET", f"/queues/{name}"))

    async def line(self, *, queue: str = "", limit: int = 100, after: str = "") -> Record:
        """A page of what waits, in order (`items`, `next`, `total`); of one queue and those below it, or of all."""
        return await self._ask(calls.call("GET", "/line", {"queue": queue, "limit": limit, "after": after}))

    async def cells(
        self, *, engine: str = "", under: str = "", depth: int = 2, limit: int = 1000, after: str = ""
    ) -> Record:
        """Part of the tree of cells: an engine, the cell `under`, or all; at most `limit` cells and devices."""
        query = {"engine": engine, "under": under, "depth": str(depth), "limit": limit, "after": after}
        return await self._ask(calls.call("GET", "/cells", query))

    async def ledger(self, queue: str) -> Record:
        """What a queue has lent and borrowed, in device-seconds."""
        return await self._ask(calls.call("GET", f"/queues/{queue}/ledger"))

    async def cordon(self, node: str, *, why: str = "") -> Record:
        """Close a machine (ENGINE/NODE) to new tasks."""
        return await self._ask(calls.call("POST", f"/nodes/{node}/cordon", data={"why": why}))

    async def uncordon(self, node: str) -> None:
        """Open a machine to new tasks again."""
        await self._ask(calls.call("POST", f"/nodes/{node}/uncordon"))

    async def drain(
        self, node: str, *, why: str = "", grace_seconds: float | None = None, after_jobs: bool = False
    ) -> Record:
        """Close a machine and have its tasks run elsewhere, or end by themselves first."""
        data = {"why": why, "graceSeconds": grace_seconds, "afterJobs": after_jobs}
        return await self._ask(calls.call("POST", f"/nodes/{node}/drain", data=data))

    async def top(self) -> Record:
        """Totals, and what runs."""
        return await self._ask(calls.call("GET", "/top"))

    # -- configuration

    async def documents(self, *, kind: str = "", limit: int = 200, after: str = "") -> Page[Record]:
        """A page of the documents that configure the cluster."""
        return await self._ask(calls.call("GET", "/documents", {"kind": kind, "limit": limit, "after": after}))

    async def configuration(self, kind: str, name: str, *, revision: int | None = None) -> Record:
        """One configuration document, as data and as YAML (`text`)."""
        return await self._ask(calls.call("GET", calls.document_path(kind, name), {"revision": revision}))

    async def apply(self, text: str | bytes, *, note: str = "", dry_run: bool = False, preempt: bool = False) -> Record:
        """Apply every document of a file, or none."""
        return await self._ask(calls.put_documents("/documents", text, query=calls.changing(note, dry_run, preempt)))

    async def put_configuration(
        self,
        kind: str,
        name: str,
        text: str | bytes,
        *,
        guard: int | None = None,
        note: str = "",
        dry_run: bool = False,
        preempt: bool = False,
    ) -> Record:
        """Apply one document; `guard` is the revision that must be the current one, 0 when there must be none."""
        query = calls.changing(note, dry_run, preempt)
        path = calls.document_path(kind, name)
        return await self._ask(calls.put_documents(path, text, method="PUT", query=query, guard=guard))

    async def diff(self, text: str | bytes) -> Record:
        """What applying a file would change."""
        return await self._ask(calls.put_documents("/documents/diff", text))

    async def configuration_history(self, kind: str, name: str, *, limit: int = 100, after: str = "") -> Page[Record]:
        """A page of a document's revisions, the latest first."""
        path = calls.document_path(kind, name, "history")
        return await self._ask(calls.call("GET", path, {"limit": limit, "after": after}))

    async def configuration_diff(
        self, kind: str, name: str, *, before: int | None = None, after: int | None = None
    ) -> Record:
        """What differs between two revisions, by default the last two."""
        query = {"from": None if before is None else str(before), "to": after}
        return await self._ask(calls.call("GET", calls.document_path(kind, name, "diff"), query))

    async def roll_back(
        self,
        kind: str,
        name: str,
        revision: int,
        *,
        guard: int | None = None,
        note: str = "",
        dry_run: bool = False,
        preempt: bool = False,
    ) -> Record:
        """Make an earlier revision the current one again, as a new revision."""
        path, query = calls.document_path(kind, name, "rollback"), calls.changing(note, dry_run, preempt)
        return await self._ask(calls.call("POST", path, query, data={"revision": revision}, **calls.guarded(guard)))

    async def delete_configuration(
        self,
        kind: str,
        name: str,
        *,
        guard: int | None = None,
        note: str = "",
        dry_run: bool = False,
        preempt: bool = False,
    ) -> Record:
        """Delete a document; its revisions stay."""
        query = calls.changing(note, dry_run, preempt)
        return await self._ask(calls.call("DELETE", calls.document_path(kind, name), query, **calls.guarded(guard)))

    # -- accounts

    async def users(self, *, limit: int = 200, after: str = "") -> Page[Record]:
        """A page of the accounts."""
        return await self._ask(calls.call("GET", "/users", {"limit": limit, "after": after}))

    async def user(self, name: str) -> Record:
        """One account."""
        return await self._ask(calls.call("GET", f"/users/{name}"))

    async def create_user(
        self, name: str, *, role: str = "user", groups: Sequence[str] = (), password: str | None = None
    ) -> Record:
        """Make an account."""
        data = {"name": name, "role": role, "groups": list(groups), "password": password}
        return await self._ask(calls.call("POST", "/users", data=data))

    async def change_user(
        self,
        name: str,
        *,
        role: str | None = None,
        groups: Sequence[str] | None = None,
        password: str | None = None,
        disabled: bool | None = None,
    ) -> Record:
        """Change an account; None leaves a field."""
        data = {"role": role, "groups": groups and list(groups), "password": password, "disabled": disabled}
        return await self._ask(calls.call("POST", f"/users/{name}", data=data))

    async def delete_user(self, name: str) -> None:
        """Remove an account."""
        await self._ask(calls.call("DELETE", f"/users/{name}"))

    async def login_link(self, name: str) -> Record:
        """Make a one-time sign-in link for an account."""
        return await self._ask(calls.call("POST", f"/users/{name}/login-link"))

    async def tokens(self) -> Page[Record]:
        """One's own tokens."""
        return await self._ask(calls.call("GET", "/tokens"))

    async def create_token(self, name: str = "", *, days: float = 90.0) -> Record:
        """Make a token; this answer is the only one with its secret."""
        return await self._ask(calls.call("POST", "/tokens", data={"name": name, "days": days}))

    async def revoke_token(self, id: str) -> None:
        """Revoke one of one's tokens."""
        await self._ask(calls.call("DELETE", f"/tokens/{id}"))

    async def secrets(self) -> Page[Record]:
        """The names of one's secrets."""
        return await self._ask(calls.call("GET", "/secrets"))

    async def put_secret(self, name: str, value: str) -> None:
        """Seal a secret."""
        await self._ask(calls.call("PUT", f"/secrets/{name}", data={"value": value}))

    async def delete_secret(self, name: str) -> None:
        """Forget a secret."""
        await self._ask(calls.call("DELETE", f"/secrets/{name}"))

    async def audit(self, *, limit: int = 200, after: str = "") -> Page[Record]:
        """A page of the audit log, newest first."""
        return await self._ask(calls.call("GET", "/audit", {"limit": limit, "after": after}))

    async def _ask(self, call: calls.Call) -> Any:
        try:
            response = await self._http.request(call.method, call.path, content=call.body, headers=self._headers(call))
        except httpx2.TransportError as error:
            raise _unreachable(self.url, error) from None
        calls.raise_for(response.status_code, response.content, response.headers.get("retry-after", ""))
        return json.loads(response.content) if response.content else None

    async def _stream(self, call: calls.Call, *, timeout: float | None) -> AsyncIterator[bytes]:
        try:
            async with self._http.stream(
                call.method, call.path, headers=self._headers(call), timeout=timeout
            ) as response:
                if response.status_code >= 400:
                    calls.raise_for(response.status_code, await response.aread())
                async for piece in response.aiter_bytes():
                    yield piece
        except httpx2.TransportError as error:
            raise _unreachable(self.url, error) from None

    def _headers(self, call: calls.Call) -> dict[str, str]:
        headers = {"accept": "application/json", "user-agent": "corral", **call.headers}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        return headers

    async def _feed(
        self, *, after: int | None = None, job: str = "", timeout: float | None = None
    ) -> AsyncIterator[Event | None]:
        """The event stream; None stands for a sign of life, the first of which comes at once."""
        query = {"after": "" if after is None else str(after), "job": job}
        made = calls.call("GET", "/events", query, accept="text/event-stream")
        async for line in _lines(self._stream(made, timeout=timeout)):
            if line.startswith(b"data: "):
                yield json.loads(line[6:])
            elif line.startswith(b":"):
                yield None


def _trust(ca: str) -> ssl.SSLContext | bool:
    return ssl.create_default_context(cafile=ca) if ca else True


def _unreachable(url: str, error: httpx2.TransportError) -> Unavailable:
    cause: BaseException = error
    while (inner := cause.__cause__ or cause.__context__) is not None:
        cause = inner
    return why_unreachable(url, cause)


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    rest = b""
    async with contextlib.aclosing(pieces):  # type: ignore[type-var]
        async for piece in pieces:
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                yield line
