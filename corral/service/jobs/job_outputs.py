"""The outputs of a job: where its document keeps results, and their files for who may read them.

An output that is in a storage needs the right to use that storage, and nothing else. One in a folder of this machine
needs the right to read the job's log, and is read with the rights of the reader's own system account. Any other URI is
named and not opened: the server has credentials that the job may not have.
"""

from __future__ import annotations

import posixpath
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, NamedTuple, TypeVar

import msgspec

from corral.kernel.errors import Conflict, NotFound
from corral.model.outputs import FilePreview, OutputView
from corral.model.records import Page
from corral.model.store_writes import JobRecord
from corral.model.views import FileView
from corral.service.access.job_access import job_resource
from corral.service.access.rules import decide
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.storages.browsing import FolderReader, Place, StorageBrowser, is_browsable, root_of
from corral.service.storages.grants import Granted, Storages
from corral.spec.job import UnifiedJob
from corral.storage.folder_browser import LocalFolder, account_of

Answer = TypeVar("Answer")
_THIS_MACHINE: Final = "local/"
"""The beginning of the names of nodes whose files are those of the server's machine."""
_SYSTEM: Final = ("proc", "sys", "dev")
"""Folders of the root that hold no files that a job kept."""
_SLOTS: Final = "folders of this machine"


class _Output(NamedTuple):
    """An output, and where its files are: in a storage, or in a folder of this machine (`storage` is empty)."""

    view: OutputView
    prefix: str = ""
    """Its path there."""


class JobOutputs:
    """Lists the outputs of jobs and reads their files."""

    def __init__(
        self, context: Context, storages: Storages, storage_browser: StorageBrowser, reader: FolderReader
    ) -> None:
        self._context = context
        self._store = context.store
        self._storages = storages
        self._storage_browser = storage_browser
        self._reader = reader

    async def views(self, actor: Actor, ref: str) -> list[OutputView]:
        """Where a job keeps results: the outputs of its document, then the storages that its tasks may write."""
        record, _ = await self._context.job_for(actor, ref, "job.read")
        return [each.view for each in await self._outputs(actor, record)]

    async def files(
        self, actor: Actor, ref: str, index: int, path: str, *, limit: int = 200, after: str = ""
    ) -> Page[FileView]:
        """One page of the files of an output, by name; an output that is one file is listed as that file.

        Raises NotFound `output-not-found`, Conflict `output-not-here`, and what looking into a storage raises.
        """
        place, prefix = await self._place(actor, ref, index)
        if prefix and not path and not after:
            try:
                entry = await self._reader.entry(actor, place, prefix)
            except NotFound:
                raise NotFound("output-not-there", "The job has kept nothing there yet, or it is gone.") from None
            if entry.kind != "folder":
                return Page([entry])
        return await self._reader.files(actor, place, _joined(prefix, path), limit=limit, after=after)

    async def file(self, actor: Actor, ref: str, index: int, path: str) -> tuple[int, AsyncIterator[bytes]]:
        """Return the size and the bytes of a file; raises like `files`."""
        place, prefix = await self._place(actor, ref, index)
        return await _of_file(prefix, path, lambda at: self._reader.file(actor, place, at))

    async def preview(self, actor: Actor, ref: str, index: int, path: str) -> FilePreview:
        """Return what a page shows of a file; raises like `files`."""
        place, prefix = await self._place(actor, ref, index)
        return await _of_file(prefix, path, lambda at: self._reader.preview(actor, place, at))

    async def picture(self, actor: Actor, ref: str, index: int, path: str) -> tuple[str, int, AsyncIterator[bytes]]:
        """Return a picture's media type, size and bytes; raises like `files`, InvalidInput for what is none."""
        place, prefix = await self._place(actor, ref, index)
        return await _of_file(prefix, path, lambda at: self._reader.picture(actor, place, at))

    async def _place(self, actor: Actor, ref: str, index: int) -> tuple[Place, str]:
        record, _ = await self._context.job_for(actor, ref, "job.read")
        outputs = await self._outputs(actor, record)
        if index >= len(outputs):
            raise NotFound("output-not-found", f"{record.name} has no output {index}; it has {len(outputs)}.")
        view, prefix = outputs[index]
        if view.storage and view.browsable:
            return await self._storage_browser.place(actor, view.storage), prefix
        if not view.browsable:
            raise Conflict("output-not-here", view.message)
        decision = await self._context.check(actor, "job.logs", job_resource(record))
        user = await self._store.user(actor.user)
        folder = LocalFolder("/", "", lambda: account_of(None if user is None else user.uid))
        return Place(_SLOTS, folder, job_resource(record), decision), prefix

    async def _outputs(self, actor: Actor, record: JobRecord) -> list[_Output]:
        job = UnifiedJob.from_document(msgspec.json.decode(record.doc))
        granted = await self._storages.all(actor)
        is_owner = actor.user == record.user and not record.orphaned
        tasks = (await self._store.job_tasks(record.id, limit=1)).items
        here = bool(tasks) and tasks[0].node.startswith(_THIS_MACHINE)
        here = here and not any(role.image for role in job.spec.roles)
        may_read = decide(actor, "job.logs", job_resource(record)).allowed
        found: list[_Output] = []
        for output in job.spec.outputs:
            view = OutputView(len(found), output.uri, output.path)
            inside = _in_storage(job, output.uri, granted, is_owner)
            if inside is not None:
                found.append(_of_storage(view, *inside))
            elif output.uri.startswith("file:///"):
                found.append(_of_folder(view, here=here, may_read=may_read))
            else:
                message = "It is in no storage that you may use, so the server does not open it."
                found.append(_Output(msgspec.structs.replace(view, message=message)))
        by_name = {each.storage.name: each for each in granted}
        for use in job.spec.storages:
            view = OutputView(len(found), "", use.where)
            if use.name not in by_name:
                message = f"The job has the storage {use.name}, which no group of yours grants."
                found.append(_Output(msgspec.structs.replace(view, message=message)))
            elif by_name[use.name].folder and not is_owner:
                message = f"Its files are in the own folder of {record.user} in the storage {use.name}."
                found.append(_Output(msgspec.structs.replace(view, message=message)))
            elif not by_name[use.name].storage.read_only:
                found.append(_of_storage(view, by_name[use.name], ""))
        return found


def _of_storage(view: OutputView, granted: Granted, prefix: str) -> _Output:
    name = granted.storage.name
    if is_browsable(granted.storage):
        return _Output(msgspec.structs.replace(view, storage=name, browsable=True), prefix)
    message = f"The machines mount the storage {name} for tasks; the server does not reach its folder."
    return _Output(msgspec.structs.replace(view, storage=name, message=message), prefix)


def _of_folder(view: OutputView, *, here: bool, may_read: bool) -> _Output:
    path = _path_of(view.uri)
    if not here or path.partition("/")[0] in _SYSTEM:
        message = (
            "It is a folder of the tasks' machine or image, which the server does not reach; name a storage instead."
        )
    elif not may_read:
        message = "It is in no storage; only the job's owner, managers of its queue and administrators look into it."
    else:
        return _Output(msgspec.structs.replace(view, browsable=True), path)
    return _Output(msgspec.structs.replace(view, message=message))


def _in_storage(job: UnifiedJob, uri: str, granted: Sequence[Granted], is_owner: bool) -> tuple[Granted, str] | None:
    """The storage that an output is in, and its path there as the actor sees it; None if it is in none of these."""
    if uri.startswith("file:///"):
        path = f"/{_path_of(uri)}"
        by_name = {each.storage.name: each for each in granted}
        mounted = [use for use in job.spec.storages if _inside(path, use.where) is not None]
        if mounted:
            use = max(mounted, key=lambda each: len(each.where))
            storage = by_name.get(use.name)
            shared = storage is not None and (not storage.folder or is_owner)
            return (storage, _inside(path, use.where) or "") if storage is not None and shared else None
        roots = [(each, root_of(each.storage), path) for each in granted]
    else:
        roots = [(each, each.storage.uri if each.storage.type == "uri" else "", uri.rstrip("/")) for each in granted]
    for storage, root, target in roots:
        below = _inside(target, posixpath.join(root, storage.folder).rstrip("/")) if root else None
        if below is not None:
            return storage, below
    return None


def _inside(path: str, folder: str) -> str | None:
    """The path below a folder, "" for the folder itself; None when it is elsewhere."""
    if path == folder:
        return ""
    return path[len(folder) + 1 :] if path.startswith(f"{folder}/") else None


def _joined(prefix: str, path: str) -> str:
    """A path below an output; a `path` that begins with a slash stays below it too."""
    return f"{prefix}/{path}"


def _path_of(uri: str) -> str:
    """The path of a file URI, without a slash at its beginning."""
    return posixpath.normpath("/" + uri.removeprefix("file://").strip("/")).strip("/")


async def _of_file(prefix: str, path: str, read: Callable[[str], Awaitable[Answer]]) -> Answer:
    """Read a file of an output; the output itself where that is one file of this name."""
    try:
        return await read(_joined(prefix, path))
    except NotFound:
        if not path or path != posixpath.basename(prefix):
            raise
    return await read(prefix)
