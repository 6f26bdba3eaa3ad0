"""Why: scripts and the command line want one object per server whose methods are the API's calls."""

# The answers are JSON, checked by the API's own tests; mypy is told their shapes here and nowhere else.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from corral.client import calls, config
from corral.client.transport import Transport
from corral.kernel.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from types import TracebackType

    from corral.client.exec import ExecStream
    from corral.client.types import Event, Job, Page, Record

ENDED = frozenset({"succeeded", "failed", "stopped"})
"""The states of a job that is over."""


class Client:
    """Corral's API as methods. Without arguments it talks to the server one is signed in to.

    Every method raises the errors of `corral.kernel.errors` that the server answered with, and Unavailable when it does
    not answer. Use it as a context manager, or call `close`. Not to be shared between threads.
    """

    def __init__(self, url: str = "", token: str = "", *, ca: str = "", timeout: float = 30.0) -> None:
        if not url:
            here = config.current()
            url, token, ca = here.url, token or here.token, ca or here.ca
        self.url = url.rstrip("/")
        self.token = token
        self.ca = ca
        self._transport = Transport(url, token, ca=ca, timeout=timeout)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection."""
        self._transport.close()

    # -- session

    def version(self) -> Record:
        """The server's version and features."""
        return self._ask(calls.call("GET", "/version"))

    def login(self, *, link: str = "", user: str = "", password: str = "") -> Record:
        """Sign in with a one-time link's token, or with user and password; this client uses the new token from then."""
        data = {"link": link} if link else {"user": user, "password": password}
        signed = self._ask(calls.call("POST", "/login", data=data))
        self.token = signed["token"]
        self._transport.close()
        self._transport = Transport(self.url, self.token, ca=self.ca)
        return signed

    def logout(self) -> None:
        """Revoke this client's token."""
        self._ask(calls.call("POST", "/logout"))

    def me(self) -> Record:
        """Who one is."""
        return self._ask(calls.call("GET", "/me"))

    # -- jobs

    def submit(
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
        return self._ask(
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

    def validate(self, text: str | bytes, *, parameters: Mapping[str, str] | None = None) -> Record:
        """Everything that is wrong with a job file, or its canonical form."""
        return self._ask(calls.validate(text, parameters=parameters))

    def jobs(
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
        return self._ask(
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

    def history(self, *, user: str = "", limit: int = 50, after: str = "") -> Page[Job]:
        """A page of the lines that removed jobs have left, the latest job first."""
        return self._ask(calls.history(user=user, limit=limit, after=after))

    def job(self, ref: str) -> Job:
        """One job, by id, name, or USER~NAME."""
        return self._ask(calls.call("GET", calls.job_path(ref)))

    def document(self, ref: str) -> Record:
        """A job's canonical document."""
        return self._ask(calls.call("GET", calls.job_path(ref, "document")))

    def tasks(self, ref: str, *, role: str = "", state: str = "", limit: int = 100, after: str = "") -> Page[Record]:
        """A page of a job's tasks."""
        query = {"role": role, "state": state, "limit": limit, "after": after}
        return self._ask(calls.call("GET", calls.job_path(ref, "tasks"), query))

    def attempts(self, ref: str, role: str, index: int, *, limit: int = 100, after: str = "") -> Page[Record]:
        """A page of the runs of one task."""
        query = {"limit": limit, "after": after}
        return self._ask(calls.call("GET", calls.job_path(ref, "tasks", role, index, "attempts"), query))

    def job_events(self, ref: str, *, limit: int = 200, after: str = "") -> Page[Event]:
        """A page of what happened to a job."""
        return self._ask(calls.call("GET", calls.job_path(ref, "events"), {"limit": limit, "after": after}))

    def placement(self, ref: str, *, limit: int = 500, after: str = "") -> Page[Record]:
        """A page of where a job's tasks run."""
        return self._ask(calls.call("GET", calls.job_path(ref, "placement"), {"limit": limit, "after": after}))

    def explain(self, ref: str) -> Record:
        """Why a job stands where it stands."""
        return self._ask(calls.call("GET", calls.job_path(ref, "explain")))

    def stop(self, ref: str) -> Job:
        """End a job."""
        return self._ask(calls.call("POST", calls.job_path(ref, "stop")))

    def restart(self, ref: str) -> Job:
        """Begin a job anew."""
        return self._ask(calls.call("POST", calls.job_path(ref, "restart")))

    def suspend(self, ref: str) -> Job:
        """End a job with its checkpoint signal, and hold it until it is resumed."""
        return self._ask(calls.call("POST", calls.job_path(ref, "suspend")))

    def resume(self, ref: str) -> Job:
        """Let a suspended job go on."""
        return self._ask(calls.call("POST", calls.job_path(ref, "resume")))

    def receipts(
        self, ref: str = "", *, queue: str = "", since: str = "", limit: int = 100, after: str = ""
    ) -> Page[Record]:
        """A page of the receipts for what had to yield: of one job, of a queue, or of all, the latest first."""
        path = calls.job_path(ref, "receipts") if ref else "/receipts"
        query = {"limit": limit, "after": after} | ({} if ref else {"queue": queue, "since": since})
        return self._ask(calls.call("GET", path, query))

    def scale(self, ref: str, replicas: int, *, role: str = "") -> Job:
        """Set how many replicas an elastic job asks for."""
        return self._ask(calls.call("POST", calls.job_path(ref, "scale"), data={"replicas": replicas, "role": role}))

    def delete(self, ref: str, *, stop: bool = False) -> None:
        """Remove an ended job; with `stop` a running one is stopped first."""
        self._ask(calls.call("DELETE", calls.job_path(ref), {"stop": stop}))

    def wait(self, ref: str, *, timeout: float | None = None, tell: Callable[[Job], None] | None = None) -> Job:
        """Wait until a job has ended; `tell` is called with the job whenever something happened to it.

        Raises TimeoutError after `timeout` seconds.
        """
        until = None if timeout is None else time.monotonic() + timeout
        job = self.job(ref)
        while True:
            try:
                for event in self._feed(job=job["id"], timeout=60.0):
                    if event is None or event["kind"].startswith("job."):
                        job = self.job(job["id"])
                        if tell is not None:
                            tell(job)
                        if job["state"] in ENDED:
                            return job
                    if until is not None and time.monotonic() > until:
                        raise TimeoutError(f"{job['name']} has not ended in {timeout:g} seconds; it goes on.")
            except Unavailable:
                if until is not None and time.monotonic() > until:
                    raise
                time.sleep(1.0)  # the server is away; the job is not

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
    ) -> Iterator[bytes]:
        """What a task printed, in pieces as they come; without a role what all tasks printed, by line."""
        if role:
            query: Record = {"stream": stream, "attempt": attempt, "offset": offset or ""}
        else:
            query = {"prefix": "" if prefix else "false"}
        path = calls.log_path(ref, role, index, follow=follow, tail=tail, **query)
        return self._transport.stream(calls.Call("GET", path), timeout=None)

    def events(self, *, after: int | None = None, job: str = "", timeout: float | None = None) -> Iterator[Event]:
        """What happens, as it happens (every job's, or one job's), from after event `after`, or from now on."""
        for event in self._feed(after=after, job=job, timeout=timeout):
            if event is not None:
                yield event

    # -- code

    def has_code(self, digest: str) -> bool:
        """Whether an archive is on the server already."""
        try:
            self._transport.send(calls.call("HEAD", f"/blobs/code/{digest}"))
        except NotFound:
            return False
        return True

    def put_code(self, pieces: Iterable[bytes], size: int) -> Record:
        """Upload a code archive (tar.gz) of `size` bytes."""
        made = calls.call("PUT", "/blobs/code", content_type="application/gzip")
        answer: Record = json.loads(self._transport.upload(made, pieces, size))
        return answer

    def exec(self, ref: str, role: str, index: int, command: Sequence[str], *, tty: bool = False) -> ExecStream:
        """Run a command inside a running task."""
        from corral.client.exec import ExecStream

        path = calls.call(
            "GET", calls.job_path(ref, "tasks", role, index, "exec"), {"cmd": list(command), "tty": tty}
        ).path
        return ExecStream(self.url + path, self.token, ca=self.ca)

    # -- cluster

    def nodes(self, *, limit: int = 200, after: str = "") -> Page[Record]:
        """A page of the machines."""
        return self._ask(calls.call("GET", "/nodes", {"limit": limit, "after": after}))

    def node(self, name: str) -> Record:
        """One machine, by ENGINE/NODE."""
        return self._ask(calls.call("GET", f"/nodes/{name}"))

    def devices(self, *, limit: int = 200, after: str = "") -> Page[Record]:
        """A page of the accelerators."""
        return self._ask(calls.call("GET", "/devices", {"limit": limit, "after": after}))

    def cluster(self) -> Record:
        """The tree of cells."""
        return self._ask(calls.call("GET", "/cluster"))

    def queues(self, *, limit: int = 200, after: str = "") -> Page[Record]:
        """A page of the queues."""
        return self._ask(calls.call("GET", "/queues", {"limit": limit, "after": after}))

    def queue(self, name: str) -> Record:
        """One queue."""
        return self._ask(calls.call("GET", f"/queues/{name}"))

    def line(self, *, queue: str = "", limit: int = 100, after: str = "") -> Record:
        """A page of what waits, in order (`items`, `next`, `total`); of one queue and those below it, or of all."""
        return self._ask(calls.call("GET", "/line", {"queue": queue, "limit": limit, "after": after}))

    def cells(self, *, engine: str = "", under: str = "", depth: int = 2, limit: int = 1000, after: str = "") -> Record:
        """Part of the tree of cells: an engine, the cell `under`, or all; at most `limit` cells and devices."""
        query = {"engine": engine, "under": under, "depth": str(depth), "limit": limit, "after": after}
        return self._ask(calls.call("GET", "/cells", query))

    def ledger(self, queue: str) -> Record:
        """What a queue has lent and borrowed, in device-seconds."""
        return self._ask(calls.call("GET", f"/queues/{queue}/ledger"))

    def cordon(self, node: str, *, why: str = "") -> Record:
        """Close a machine (ENGINE/NODE) to new tasks."""
        return self._ask(calls.call("POST", f"/nodes/{node}/cordon", data={"why": why}))

    def uncordon(self, node: str) -> None:
        """Open a machine to new tasks again."""
        self._ask(calls.call("POST", f"/nodes/{node}/uncordon"))

    def drain(
        self, node: str, *, why: str = "", grace_seconds: float | None = None, after_jobs: bool = False
    ) -> Record:
        """Close a machine and have its tasks run elsewhere, or end by themselves first."""
        data = {"why": why, "graceSeconds": grace_seconds, "afterJobs": after_jobs}
        return self._ask(calls.call("POST", f"/nodes/{node}/drain", data=data))

    def top(self) -> Record:
        """Totals, and what runs."""
        return self._ask(calls.call("GET", "/top"))

    # -- configuration

    def documents(self, *, kind: str = "", limit: int = 200, after: str = "") -> Page[Record]:
        """A page of the documents that configure the cluster."""
        return self._ask(calls.call("GET", "/documents", {"kind": kind, "limit": limit, "after": after}))

    def configuration(self, kind: str, name: str, *, revision: int | None = None) -> Record:
        """One configuration document, as data and as YAML (`text`)."""
        return self._ask(calls.call("GET", calls.document_path(kind, name), {"revision": revision}))

    def apply(self, text: str | bytes, *, note: str = "", dry_run: bool = False, preempt: bool = False) -> Record:
        """Apply every document of a file, or none."""
        return self._ask(calls.put_documents("/documents", text, query=calls.changing(note, dry_run, preempt)))

    def put_configuration(
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
        return self._ask(calls.put_documents(path, text, method="PUT", query=query, guard=guard))

    def diff(self, text: str | bytes) -> Record:
        """What applying a file would change."""
        return self._ask(calls.put_documents("/documents/diff", text))

    def configuration_history(self, kind: str, name: str, *, limit: int = 100, after: str = "") -> Page[Record]:
        """A page of a document's revisions, the latest first."""
        path = calls.document_path(kind, name, "history")
        return self._ask(calls.call("GET", path, {"limit": limit, "after": after}))

    def configuration_diff(
        self, kind: str, name: str, *, before: int | None = None, after: int | None = None
    ) -> Record:
        """What differs between two revisions, by default the last two."""
        query = {"from": None if before is None else str(before), "to": after}
        return self._ask(calls.call("GET", calls.document_path(kind, name, "diff"), query))

    def roll_back(
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
        return self._ask(calls.call("POST", path, query, data={"revision": revision}, **calls.guarded(guard)))

    def delete_configuration(
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
        return self._ask(calls.call("DELETE", calls.document_path(kind, name), query, **calls.guarded(guard)))

    # -- accounts

    def users(self, *, limit: int = 200, after: str = "") -> Page[Record]:
        """A page of the accounts."""
        return self._ask(calls.call("GET", "/users", {"limit": limit, "after": after}))

    def user(self, name: str) -> Record:
        """One account."""
        return self._ask(calls.call("GET", f"/users/{name}"))

    def create_user(
        self, name: str, *, role: str = "user", groups: Sequence[str] = (), password: str | None = None
    ) -> Record:
        """Make an account."""
        data = {"name": name, "role": role, "groups": list(groups), "password": password}
        return self._ask(calls.call("POST", "/users", data=data))

    def change_user(
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
        return self._ask(calls.call("POST", f"/users/{name}", data=data))

    def delete_user(self, name: str) -> None:
        """Remove an account."""
        self._ask(calls.call("DELETE", f"/users/{name}"))

    def login_link(self, name: str) -> Record:
        """Make a one-time sign-in link for an account."""
        return self._ask(calls.call("POST", f"/users/{name}/login-link"))

    def tokens(self) -> Page[Record]:
        """One's own tokens."""
        return self._ask(calls.call("GET", "/tokens"))

    def create_token(self, name: str = "", *, days: float = 90.0) -> Record:
        """Make a token; this answer is the only one with its secret."""
        return self._ask(calls.call("POST", "/tokens", data={"name": name, "days": days}))

    def revoke_token(self, id: str) -> None:
        """Revoke one of one's tokens."""
        self._ask(calls.call("DELETE", f"/tokens/{id}"))

    def secrets(self) -> Page[Record]:
        """The names of one's secrets."""
        return self._ask(calls.call("GET", "/secrets"))

    def put_secret(self, name: str, value: str) -> None:
        """Seal a secret."""
        self._ask(calls.call("PUT", f"/secrets/{name}", data={"value": value}))

    def delete_secret(self, name: str) -> None:
        """Forget a secret."""
        self._ask(calls.call("DELETE", f"/secrets/{name}"))

    def audit(self, *, limit: int = 200, after: str = "") -> Page[Record]:
        """A page of the audit log, newest first."""
        return self._ask(calls.call("GET", "/audit", {"limit": limit, "after": after}))

    def _ask(self, call: calls.Call) -> Any:
        _, _, body = self._transport.send(call)
        return json.loads(body) if body else None

    def _feed(self, *, after: int | None = None, job: str = "", timeout: float | None = None) -> Iterator[Event | None]:
        """The event stream; None stands for a sign of life, the first of which comes at once."""
        query = {"after": "" if after is None else str(after), "job": job}
        made = calls.call("GET", "/events", query, accept="text/event-stream")
        for line in _lines(self._transport.stream(made, timeout=timeout)):
            if line.startswith(b"data: "):
                yield json.loads(line[6:])
            elif line.startswith(b":"):
                yield None


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
