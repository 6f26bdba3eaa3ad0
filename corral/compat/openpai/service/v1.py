"""Jobs of OpenPAI's protocol v1 (the YARN era), with or without a namespace; they become jobs like all others."""

from __future__ import annotations

import asyncio
import json
import posixpath
from functools import partial
from typing import Any, Final

from corral.compat.openpai.language.names import OWN_TAGS
from corral.compat.openpai.language.translation import plugins, to_protocol
from corral.compat.openpai.language.v1 import TOO_MANY_OF_A_ROLE, read_v1
from corral.compat.openpai.language.v1_job import to_v1, v1_job, with_folders
from corral.compat.openpai.records.terms import OpenPaiFilter
from corral.compat.openpai.records.views import JobDetail
from corral.compat.openpai.runtime.keys import KeyPair, key_pair
from corral.compat.openpai.runtime.task import job_key
from corral.compat.openpai.service.background_removal import BackgroundRemoval
from corral.compat.openpai.service.errors import OpenPaiRefusal, bad_parameters, no_job
from corral.compat.openpai.service.jobs import OpenPaiJobs
from corral.compat.openpai.tables.job_lists import OpenPaiLists
from corral.kernel.errors import CorralError, Forbidden
from corral.kernel.tokens import job_secret
from corral.service.access.job_access import job_resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.people.authentication import Authentication
from corral.service.storages.grants import Storages
from corral.spec.errors import SpecError
from corral.spec.own_file import OwnFile
from corral.storage.staging import place
from corral.workers.pool import INLINE_BYTES

LEGACY: Final = f"{OWN_TAGS}legacy"
"""Tag of a job that was submitted without a namespace; its name was unique in the whole cluster."""
_MOST_AUTH: Final = 64 * 1024
_AUTH_LINES: Final = 3
_MOST_NAMESAKES: Final = 50_000


class OpenPaiV1:
    """Jobs of protocol v1."""

    def __init__(
        self,
        context: Context,
        jobs: OpenPaiJobs,
        storages: Storages,
        removal: BackgroundRemoval,
        authentication: Authentication,
        *,
        fs_uri: str,
    ) -> None:
        self._context = context
        self._store = context.store
        self._jobs = jobs
        self._storages = storages
        self._removal = removal
        self._authentication = authentication
        self._fs_uri = fs_uri

    async def submit(self, actor: Actor, text: bytes, *, namespace: str = "", name: str = "") -> dict[str, Any]:
        """Accept a v1 job, in a user's namespace or in none; return the checked document. `name` replaces its own.

        A job of protocol v2 is accepted too, as in OpenPAI's last releases with these routes. Raises OpenPaiRefusal.
        """
        if b"protocolVersion" in text and b"jobName" not in text:
            return {"jobName": await self._jobs.submit(await self._of_namespace(actor, namespace), text)}
        try:
            v1 = await self._context.run_in_worker(len(text) <= INLINE_BYTES, read_v1, text)
        except SpecError as error:
            said = TOO_MANY_OF_A_ROLE if TOO_MANY_OF_A_ROLE in error.message else ""
            raise OpenPaiRefusal("InvalidParametersError", said or error.message) from None
        if name:
            v1["jobName"] = name
        owner = await self._of_namespace(actor, namespace)
        if not namespace and await self.owner(v1["jobName"]):
            raise OpenPaiRefusal("ConflictJobError", f"Job name {v1['jobName']} already exists")
        auth = await self._registry(v1, owner.user)
        try:
            terms = {"user": owner.user, "fs_uri": self._fs_uri, "folder": await self._storages.folder_of(owner)}
            translate = partial(v1_job, v1, auth=auth, **terms)
            job = await self._context.run_in_worker(len(text) <= INLINE_BYTES, translate)
        except SpecError as error:
            raise OpenPaiRefusal("InvalidParametersError", error.message) from None
        file = None if name else OwnFile(text.decode("utf-8", "replace"))
        await self._jobs.submit_job(owner, job, v1["jobName"], () if namespace else (LEGACY,), file)
        return v1

    async def owner(self, name: str) -> str:
        """The owner of the job with a name: of the one without a namespace, else of the latest; "" if there is none."""
        wanted = OpenPaiFilter(name=name.replace("\0", ""), limit=_MOST_NAMESAKES)
        named = (await OpenPaiLists(self._store).page(wanted)).jobs if wanted.name else []
        return next((job.user for job in (*(each for each in named if LEGACY in each.tags), *named)), "")

    async def place(self, name: str, namespace: str = "") -> tuple[str, str]:
        """A job's name and namespace; `user~job` is split into them, unless it is itself a job's name."""
        if namespace or "~" not in name or await self.owner(name):
            return name, namespace
        user, _, rest = name.partition("~")
        return rest, user

    async def find(self, actor: Actor, name: str, namespace: str = "") -> tuple[str, JobDetail]:
        """Find a job by its name, in a user's namespace or anywhere; return its owner and its detail.

        Raises OpenPaiRefusal NoJobError.
        """
        user = namespace or await self.owner(name)
        if not user:
            raise no_job(name)
        try:
            return user, await self._jobs.get(actor, user, name)
        except OpenPaiRefusal as error:
            if error.code == "NoJobError":
                raise OpenPaiRefusal("NoJobError", f"Job {name[:300]} is not found.") from None
            raise

    async def config(self, actor: Actor, name: str, namespace: str = "") -> dict[str, Any]:
        """The document that a job was submitted as: v1, or the protocol of a v2 job with its secrets masked.

        Raises OpenPaiRefusal.
        """
        user, _ = await self.find(actor, name, namespace)
        record = await self._jobs.find(user, name)
        found = to_v1(json.loads(record.doc))
        return await self._jobs.config(actor, user, name) if found is None else found

    async def remove(self, actor: Actor, name: str, namespace: str = "") -> None:
        """Stop and remove a job; returns before the job has ended.

        Raises OpenPaiRefusal.
        """
        user, _ = await self.find(actor, name, namespace)
        record = await self._jobs.find(user, name)
        try:
            await self._removal.stop_and_remove(actor, record.id)
        except Forbidden:
            why = f"User {actor.user} is not allowed to remove job {name}."
            raise OpenPaiRefusal("ForbiddenUserError", why) from None

    async def execute(self, actor: Actor, name: str, value: str, namespace: str = "") -> None:
        """Stop a job, or start it again.

        Raises OpenPaiRefusal.
        """
        user, _ = await self.find(actor, name, namespace)
        try:
            await self._jobs.execute(actor, user, name, value)
        except OpenPaiRefusal as error:
            if error.code != "ForbiddenUserError":
                raise
            why = f"User {actor.user} is not allowed to execute job {name}."
            raise OpenPaiRefusal("ForbiddenUserError", why) from None

    async def has_ssh_key(self, user: str, name: str) -> bool:
        """Whether a job's tasks accept the job's own SSH key; it asks for that through the ssh plug-in."""
        record = await self._jobs.find(user, name)
        try:
            asked = plugins(to_protocol(json.loads(record.doc)))
        except SpecError:
            return False
        return any(each.get("plugin") == "ssh" and _truly(each).get("jobssh") for each in asked)

    async def ssh_key(self, actor: Actor, name: str, namespace: str = "") -> KeyPair:
        """The SSH key that opens the tasks of a job, for callers who may exec in them.

        Raises OpenPaiRefusal.
        """
        user, _ = await self.find(actor, name, namespace)
        record = await self._jobs.find(user, name)
        if not await self.has_ssh_key(user, name):
            raise OpenPaiRefusal("NoJobSshInfoError", f"SSH info of job {name[:300]} is not found.")
        decision = await self._context.check(actor, "job.exec", job_resource(record))
        await self._context.note(actor, "job.exec", job_resource(record), decision, key="ssh")
        return key_pair(job_key(job_secret(self._context.key, record.id), "openpai-ssh"), "corral-job")

    async def _of_namespace(self, actor: Actor, namespace: str) -> Actor:
        """The account that a job of a namespace is submitted as.

        Raises OpenPaiRefusal where the actor may not write into it.
        """
        if not namespace or namespace == actor.user:
            return actor
        if not actor.is_admin:
            why = f"User {actor.user} is not allowed to do operation in the namespace of {namespace[:200]}."
            raise OpenPaiRefusal("ForbiddenUserError", why)
        return await self._authentication.account(namespace)

    async def _registry(self, v1: dict[str, Any], user: str) -> tuple[str, str, str] | None:
        """Read a job's authFile: registry, user name and password, one on each line.

        Only files of the default file system are read, so that nobody can make the server open its own files. Raises
        OpenPaiRefusal.
        """
        if not v1["authFile"]:
            return None
        settled = with_folders(v1, user, self._fs_uri)["authFile"]
        uri = settled if "://" in settled else f"{self._fs_uri}{settled}"
        root = f"{self._fs_uri}/"
        path = uri.removeprefix(root)
        if not self._fs_uri or not uri.startswith(root) or posixpath.normpath(f"/{path}") != f"/{path}":
            raise bad_parameters(f"The authFile {v1['authFile'][:300]} is not on the cluster's default file system.")
        try:
            text = await asyncio.to_thread(_read, uri)
        except (CorralError, OSError):
            raise bad_parameters(f"Cannot read Authentication file {v1['authFile'][:300]}.") from None
        lines = [line.strip() for line in text.strip().splitlines()]
        if len(lines) != _AUTH_LINES:
            raise bad_parameters(f"Authentication file {v1['authFile'][:300]} has wrong format.")
        return lines[0], lines[1], lines[2]


def _truly(plugin: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a plug-in; empty if they are not a mapping."""
    found = plugin.get("parameters")
    return found if isinstance(found, dict) else {}


def _read(uri: str) -> str:
    """The text of a file's first 64 KiB."""
    filesystem, path = place(uri)
    with filesystem.open(path, "rb") as file:
        data: bytes = file.read(_MOST_AUTH)
    return data.decode("utf-8", "replace")
