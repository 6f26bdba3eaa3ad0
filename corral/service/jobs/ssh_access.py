"""SSH into running tasks: who may, the host key of the cluster, and certificates that are good for a few minutes.

All keys derive from the server's key, so every front has the same ones and none is stored. Each account has a
certificate authority of its own for each task: a certificate for another task or of another account is never accepted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from corral.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound
from corral.kernel.ids import AttemptId, JobId
from corral.kernel.tokens import derive_key
from corral.model.records import rfc3339
from corral.model.views import SshAccessView
from corral.service.access.job_access import job_resource
from corral.service.access.rules import decide
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.jobs.task_connections import running_task, started_task
from corral.service.people.authentication import Authentication

if TYPE_CHECKING:
    import asyncssh

CERTIFICATE_SECONDS: Final = 300.0
"""Seconds in which a connection must begin."""
_PUBLIC_KEY: Final = re.compile(r"ssh-ed25519 [A-Za-z0-9+/]{68}={0,2}")


class Entered(msgspec.Struct, frozen=True):
    """A running task that an account has entered by SSH."""

    job: JobId
    task: str
    attempt: AttemptId
    ports: frozenset[int]
    """The ports that the task was given."""


class SshAccess:
    """Who may enter which task by SSH, and with which keys."""

    def __init__(self, context: Context, authentication: Authentication) -> None:
        self._context, self._authentication = context, authentication
        self._store = context.store

    async def certificate(self, actor: Actor, ref: str, role: str, index: int, public_key: str) -> SshAccessView:
        """Sign a public key, so that its owner may enter a running task within `CERTIFICATE_SECONDS`.

        Raises InvalidInput, NotFound, Forbidden, Conflict `task-not-running` or `no-ssh`.
        """
        if not _PUBLIC_KEY.fullmatch(public_key):
            raise InvalidInput(
                "bad-key", "The public key must be an Ed25519 key of OpenSSH; make one with `ssh-keygen`."
            )
        record, _ = await self._context.job_for(actor, ref, "job.exec")
        await started_task(self._store, record, role, index)
        library = asyncssh_library()
        try:
            key = library.import_public_key(public_key)
        except library.KeyImportError:
            raise InvalidInput("bad-key", "The public key cannot be read; make one with `ssh-keygen`.") from None
        expires_at = self._context.clock.now() + CERTIFICATE_SECONDS
        task = f"{role}-{index}"
        signed = self._authority(actor, record.id, task).generate_user_certificate(
            key,
            f"{actor.user} for {task} of {record.id}",
            valid_before=int(expires_at),
            permit_x11_forwarding=False,
            permit_agent_forwarding=False,
            permit_user_rc=False,
        )
        text = signed.export_certificate().decode().strip()
        return SshAccessView(record.id, task, _line(self.host_key()), text, rfc3339(expires_at))

    async def enter(self, actor: Actor, ref: str, role: str, index: int) -> Entered:
        """Let an account enter a running task, which is written to the audit log.

        Raises NotFound, Forbidden, Conflict `task-not-running`.
        """
        record, decision = await self._context.job_for(actor, ref, "job.exec")
        record, task = await started_task(self._store, record, role, index)
        name = f"{role}-{index}"
        await self._context.note(actor, "job.exec", job_resource(record), decision, task=name, by="ssh")
        ports = frozenset(number for numbers in task.ports.values() for number in numbers)
        return Entered(record.id, name, record.run.attempt_of(task), ports)

    async def check(self, actor: Actor, entered: Entered) -> None:
        """Check that the attempt still runs, and that the account may still enter it.

        Raises NotFound, Forbidden, Unauthenticated, Conflict `task-not-running`.
        """
        actor = await self._authentication.of_token(actor.token_id)
        record = (await self._store.jobs_by_id([entered.job])).get(entered.job)
        if record is None:
            raise NotFound("job-not-found", "The job was removed.")
        decision = decide(actor, "job.exec", job_resource(record))
        if not decision.allowed:
            raise Forbidden("not-allowed", f"You may not enter the tasks of {record.name} any more.")
        role, _, index = entered.task.rpartition("-")
        task = await running_task(self._store, record, role, int(index))
        if record.run.attempt_of(task) != entered.attempt:
            raise Conflict("task-not-running", f"The attempt of {entered.task} has ended; connect again to the next.")

    def host_key(self) -> asyncssh.SSHKey:
        """The host key of the cluster."""
        return _key(derive_key(self._context.key, "ssh-host"))

    def accepts(self, actor: Actor, entered: Entered, authority: asyncssh.SSHKey) -> bool:
        """Whether certificates of an authority let this account enter this task."""
        expected = self._authority(actor, entered.job, entered.task)
        return bool(authority.public_data == expected.public_data)

    def _authority(self, actor: Actor, job: JobId, task: str) -> asyncssh.SSHKey:
        return _key(derive_key(self._context.key, f"ssh-user:{job}:{task}:{actor.user}"))


def asyncssh_library() -> Any:
    """The library of SSH, loaded when it is first needed.

    Raises Conflict `no-ssh` where the server was installed without it.
    """
    try:
        import asyncssh
    except ImportError:
        message = "This server was installed without SSH; its administrator adds it with `pip install 'corral[ssh]'`."
        raise Conflict("no-ssh", message) from None
    return asyncssh


def _key(seed: bytes) -> asyncssh.SSHKey:
    """The Ed25519 key of a seed."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    pem = Ed25519PrivateKey.from_private_bytes(seed).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    key: asyncssh.SSHKey = asyncssh_library().import_private_key(pem)
    return key


def _line(key: asyncssh.SSHKey) -> str:
    """A public key as files of OpenSSH have it, without a comment."""
    return " ".join(key.export_public_key().decode().split()[:2])
