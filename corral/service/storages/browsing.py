"""Browse storages: list storages, list folders, preview and read files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, NamedTuple

from corral.kernel.errors import Conflict
from corral.model.accounts import Group
from corral.model.outputs import FilePreview
from corral.model.records import Page, rfc3339
from corral.model.views import FileView, StorageView
from corral.service.access.rules import Decision, Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.list_cursor import name_at, name_cursor
from corral.service.storages.grants import Granted, Storages
from corral.service.storages.pictures import checked_picture
from corral.service.storages.preview import READ, preview_of
from corral.spec.storage import StorageDocument
from corral.storage.folder_browser import Browser, Entry, Folder, LocalFolder, RemoteStorage, account_of

_ALL: Final = "*"
_INLINE: Final = 4096
"""Bytes of a file whose preview is made in this process."""


class Place(NamedTuple):
    """A folder to look into, what the audit log names, and the decision that allowed it."""

    name: str
    """Its calls share the slots of this name."""
    folder: Folder
    resource: Resource
    decision: Decision


class FolderReader:
    """Reads folders for users: pages of entries, previews, pictures, and whole files, which the audit log records."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._browser: Browser | None = None

    async def files(self, actor: Actor, place: Place, path: str, *, limit: int, after: str) -> Page[FileView]:
        """One page of the entries of a folder, by name."""
        begin = name_at(after)
        found = await self._looker().entries(place.name, place.folder, path, begin, limit, user=actor.user)
        return Page([file_view(each) for each in found.entries], name_cursor(found.next) if found.next else None)

    async def entry(self, actor: Actor, place: Place, path: str) -> FileView:
        """What is at a path."""
        return file_view(await self._looker().entry(place.name, place.folder, path, user=actor.user))

    async def file(self, actor: Actor, place: Place, path: str) -> tuple[int, AsyncIterator[bytes]]:
        """Return a file's size and its bytes, and record the read."""
        found = await self._looker().file(place.name, place.folder, path, user=actor.user)
        await self._note(actor, place, path, found[0])
        return found

    async def preview(self, actor: Actor, place: Place, path: str) -> FilePreview:
        """Return what a page shows of a file, and record the read."""
        size, data = await self._beginning(actor, place, path)
        await self._note(actor, place, path, len(data))
        name = path.rstrip("/").rpartition("/")[2]
        return await self._context.run_in_worker(len(data) <= _INLINE, preview_of, name, data, size)

    async def picture(self, actor: Actor, place: Place, path: str) -> tuple[str, int, AsyncIterator[bytes]]:
        """Return a picture's media type, its size and its bytes, and record the read.

        Raises InvalidInput `no-picture`, `picture-too-large`.
        """
        _, data = await self._beginning(actor, place, path)
        size, pieces = await self._looker().file(place.name, place.folder, path, user=actor.user)
        kind = checked_picture(data, size)
        await self._note(actor, place, path, size)
        return kind, size, pieces

    async def _beginning(self, actor: Actor, place: Place, path: str) -> tuple[int, bytes]:
        return await self._looker().beginning(place.name, place.folder, path, READ, user=actor.user)

    async def _note(self, actor: Actor, place: Place, path: str, size: int) -> None:
        await self._context.note(actor, "storage.read", place.resource, place.decision, path=path[:500], bytes=size)

    def _looker(self) -> Browser:
        if self._browser is None:
            self._browser = Browser()
        return self._browser


class StorageBrowser:
    """Browse storages; a user may read the same folders as the user's tasks.

    Every call on a folder raises NotFound `storage-not-found`, `path-not-found`; Forbidden; InvalidInput `bad-path`,
    `path-is-link`, `bad-cursor`, `not-a-file`; Conflict `storage-not-here`; Unavailable when the storage does not answer.
    """

    def __init__(self, context: Context, storages: Storages, reader: FolderReader) -> None:
        self._context = context
        self._store = context.store
        self._storages = storages
        self._reader = reader

    async def views(self, actor: Actor) -> list[StorageView]:
        """The storages that the actor may use, by name."""
        groups = await self._store.groups() if actor.is_admin else []
        return [_view(each, groups) for each in await self._storages.all(actor)]

    async def files(self, actor: Actor, name: str, path: str, *, limit: int = 200, after: str = "") -> Page[FileView]:
        """One page of the entries of a storage's folder, by name."""
        return await self._reader.files(actor, await self.place(actor, name), path, limit=limit, after=after)

    async def file(self, actor: Actor, name: str, path: str) -> tuple[int, AsyncIterator[bytes]]:
        """Return a file's size and its bytes, and record the read in the audit log."""
        return await self._reader.file(actor, await self.place(actor, name), path)

    async def preview(self, actor: Actor, name: str, path: str) -> FilePreview:
        """Return what a page shows of a file, and record the read in the audit log."""
        return await self._reader.preview(actor, await self.place(actor, name), path)

    async def picture(self, actor: Actor, name: str, path: str) -> tuple[str, int, AsyncIterator[bytes]]:
        """Return a picture's media type, size and bytes, and record the read in the audit log."""
        return await self._reader.picture(actor, await self.place(actor, name), path)

    async def place(self, actor: Actor, name: str) -> Place:
        """The folder of a storage as the actor sees it."""
        granted = await self._storages.get(actor, name)
        if granted.folder:
            await self._storages.check_own_folder(actor, name)
        resource = Resource("storage", name)
        decision = await self._context.check(actor, "storage.use", resource)
        return Place(name, await self._folder(actor, granted), resource, decision)

    async def _folder(self, actor: Actor, granted: Granted) -> Folder:
        storage, own = granted.storage, granted.folder
        if storage.type == "uri":
            return RemoteStorage(storage.uri, own)
        root = root_of(storage)
        if not root:
            message = (
                f"The storage {storage.name} ({storage.type}) is mounted for tasks alone; the server looks into folders, "
                "URIs, and what machines have mounted at hostPath."
            )
            raise Conflict("storage-not-here", message)
        user = await self._store.user(actor.user)
        return LocalFolder(root, own, lambda: account_of(None if user is None else user.uid))


def root_of(storage: StorageDocument) -> str:
    """Where the server's machine has the storage; "" if it has not."""
    return storage.host_path or (storage.path if storage.type == "folder" else "")


def is_browsable(storage: StorageDocument) -> bool:
    """Whether the server reaches the storage."""
    return storage.type == "uri" or bool(root_of(storage))


def file_view(entry: Entry) -> FileView:
    """An entry of a folder, as the API shows it."""
    return FileView(entry.name, entry.kind, entry.size, rfc3339(entry.changed_at))


def _view(granted: Granted, groups: list[Group]) -> StorageView:
    storage = granted.storage
    return StorageView(
        storage.name,
        storage.type,
        storage.description,
        storage.share,
        storage.read_only,
        granted.default,
        is_browsable(storage),
        tuple(group.name for group in groups if storage.name in group.storages or _ALL in group.storages),
    )
