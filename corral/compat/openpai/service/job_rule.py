"""OpenPAI's part when jobs are accepted: its documents, what it adds to its jobs, and its quota of cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from corral.compat.openpai.language.names import (
    DEFAULT_FILES,
    FOLDER,
    JOB_TYPE,
    OWN_TAGS,
    PROTOCOL,
    SSH_KEYS,
    USER,
    VERSION,
)
from corral.compat.openpai.language.translation import public_keys
from corral.compat.openpai.service.list_fields import listing_of
from corral.compat.openpai.service.quota import CellQuota
from corral.kernel.errors import Conflict
from corral.model.store_writes import NewJob
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.storages.grants import Storages
from corral.spec.job import UnifiedJob
from corral.store.cluster_views import Admission

_SSH: Final = '"ssh"'
"""Occurs in the protocol of each job that has the plug-in ssh."""
_V1: Final = "jobName"
"""Occurs in each document of protocol v1."""


class OpenPaiJobRule:
    """The job rule of OpenPAI; see `JobRule`."""

    own_tags = OWN_TAGS

    def __init__(self, context: Context, storages: Storages, quota: CellQuota, *, fs_uri: str) -> None:
        """`fs_uri` is the default file system of jobs of protocol v1."""
        self._store = context.store
        self._storages = storages
        self._quota = quota
        self._fs_uri = fs_uri

    async def reader_options(self, actor: Actor, text: bytes | str) -> Mapping[str, Any]:
        """The default file system, and for a document of protocol v1 the submitter's folder in it."""
        options = {"fs_uri": self._fs_uri}
        if (_V1.encode() in text) if isinstance(text, bytes) else (_V1 in text):
            options["folder"] = await self._storages.folder_of(actor)
        return options

    async def complete(self, actor: Actor, job: UnifiedJob) -> UnifiedJob:
        """Add the submitter's name to a job of OpenPAI, and their public keys if it uses ssh."""
        if job.spec.job_type != JOB_TYPE:
            return job
        files = {DEFAULT_FILES: self._fs_uri} if self._fs_uri else {}
        annotations = {**files, **job.metadata.annotations, USER: actor.user}
        annotations.pop(SSH_KEYS, None)
        annotations.pop(FOLDER, None)
        if annotations.get(VERSION) == "1" and (folder := await self._storages.folder_of(actor)) != actor.user:
            annotations[FOLDER] = folder
        if _SSH in annotations.get(PROTOCOL, ""):
            user = await self._store.user(actor.user)
            if keys := public_keys({} if user is None else user.extension):
                annotations[SSH_KEYS] = keys
        return job.model_copy(update={"metadata": job.metadata.model_copy(update={"annotations": annotations})})

    def always_waits(self, job: UnifiedJob) -> bool:
        """Whether it is a job of OpenPAI, which waits until it can run."""
        return job.spec.job_type == JOB_TYPE

    async def admit(self, job: UnifiedJob, admission: Admission) -> UnifiedJob:
        """Count a job of OpenPAI in cells where its queue owns some.

        Raises ProtocolError, Conflict `no-enough-quota`.
        """
        return await self._quota.in_cells(job, admission)

    async def check_edit(self, job: UnifiedJob, admission: Admission) -> None:
        """Check that the new terms leave a job of OpenPAI as many cells as it was counted with.

        Raises ProtocolError, Conflict `no-enough-quota` or `counted-in-cells`.
        """
        if await self._quota.in_cells(job, admission) != job:
            message = f"In the queue {job.spec.queue} a job of OpenPAI has whole cells; submit {job.name} there anew."
            raise Conflict("counted-in-cells", message)

    def stored(self, new: NewJob, job: UnifiedJob) -> NewJob:
        """The new job with the fields of OpenPAI's job list."""
        listing = listing_of(job)
        return new if listing is None else msgspec.structs.replace(new, submitted_as=listing.stored())
