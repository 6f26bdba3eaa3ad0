"""Keep the file that a job was submitted as, next to its canonical document and with its secrets sealed.

When a file with placeholders is submitted, they are filled from a job that the submitter names and owns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from corral.kernel.errors import NotFound
from corral.model.store_writes import JobRecord, StoredFile, file_owner
from corral.model.views import JobFile
from corral.service.access.job_access import job_resource
from corral.service.access.rules import decide
from corral.service.actor import Actor
from corral.service.context import Context
from corral.spec.own_file import OwnFile
from corral.storage.code_archives import BLOB_SCHEME

NOT_KEPT = "The file itself is not kept with the job, since a secret may stand in it in clear elsewhere, too."
"""Message for the submitter of a file from which not all secrets can be removed."""

_MOST_EDITS: Final = 20
"""Edits of a job that are told with its file."""


class JobFiles:
    """Read and seal the files of jobs."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    async def get(self, actor: Actor, ref: str) -> JobFile:
        """The file that a job was submitted as, with placeholders for its secrets.

        Raises NotFound `no-job-file` where none was kept, Forbidden if the actor may not read the job's environment.
        """
        record, _ = await self._context.job_for(actor, ref, "job.environment")
        kept = await self._store.job_file(_key(record))
        if kept is None:
            raise NotFound(
                "no-job-file",
                f"No file was kept for job {record.name}; its document is equivalent (`corral get {record.id} -o yaml`).",
            )
        sealed = await self._store.secrets(file_owner(_key(record)))
        uri = str(msgspec.json.decode(record.doc)["spec"].get("code", {}).get("uri", ""))
        code = uri.removeprefix(BLOB_SCHEME) if uri.startswith(BLOB_SCHEME) else ""
        edited = await self._store.events_of(record.id, kinds=("job.edited",))
        edits = tuple(event.message for event in reversed(edited[:_MOST_EDITS]))
        return JobFile(record.id, kept.text, kept.parameters, code, len(sealed), edits)

    async def file_secrets(self, actor: Actor, ref: str) -> dict[str, str]:
        """The values of the placeholders in the file of one of the actor's own jobs; empty for any other job."""
        record = await self._own_job(actor, ref)
        return {} if record is None else await self._opened(file_owner(_key(record)))

    async def job_secrets(self, actor: Actor, ref: str) -> dict[str, str]:
        """The secrets that one of the actor's own jobs runs with; empty for any other job."""
        record = await self._own_job(actor, ref)
        return {} if record is None else await self._opened(f"job:{record.id}")

    async def why_no_secret(self, actor: Actor, ref: str) -> str:
        """Why the job that a submitter names has no secret for a placeholder; "" when none is named."""
        if not ref:
            return ""
        shown = ref[:100]
        try:
            record = await self._context.find(actor, ref)
        except NotFound:
            return f"there is no job {shown}"
        if not decide(actor, "job.read", job_resource(record)).allowed:
            return f"there is no job {shown}"
        if record.user != actor.user:
            return f"job {shown} is {record.user}'s, and only its owner has its secrets"
        if record.orphaned:
            return f"job {shown} is of an account that was deleted"
        return f"job {shown} has no secret for this place"

    async def _own_job(self, actor: Actor, ref: str) -> JobRecord | None:
        record = await self._store.find_job(ref, actor.user) if ref else None
        return record if record is not None and record.user == actor.user and not record.orphaned else None

    async def _opened(self, owner: str) -> dict[str, str]:
        sealed = await self._store.secrets(owner)
        return {name: self._context.secret_box.open(owner, name, value) for name, value in sealed.items()}

    def sealed(self, job: str, file: OwnFile | None, parameters: Mapping[str, str]) -> StoredFile | None:
        """A file in the form in which it is stored with its job."""
        if file is None:
            return None
        owner = file_owner(job)
        sealed = {name: self._context.secret_box.seal(owner, name, value) for name, value in file.secrets.items()}
        return StoredFile(file.text, dict(parameters), sealed)


def _key(record: JobRecord) -> str:
    """Id of the job that the file is stored with; for an array the first one."""
    return record.array_parent or record.id
