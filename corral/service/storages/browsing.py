"""Browse storages: list storages, list folders, read files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from corral.kernel.errors import Conflict
from corral.model.accounts import Group
from corral.model.records import Page, rfc3339
from corral.model.views import FileView, StorageView
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.list_cursor import name_at, name_cursor
from corral.service.storages.grants import Granted, Storages
from corral.spec.storage import StorageDocument
from corral.storage.folder_browser import Browser, Folder, LocalFolder, RemoteStorage, account_of

_ALL: Final = "*"


class StorageBrowser:
    """Browse storages; a user may read the same folders as the user's tasks."""

    def __init__(self, context: Context, storages: Storages) -> None:
        self._context = context
        self._store = context.store
        self._storages = storages
        self._browser: Browser | None = None

    async def views(self, actor: Actor) -> list[StorageView]:
        """The storages that the actor may use, by name."""
        groups = await self._store.groups() if actor.is_admin else []
        return [_view(each, groups) for each in await self._storages.all(actor)]

    async def files(self, actor: Actor, name: str, path: str, *, limit: int = 200, after: str = "") -> Page[FileView]:
        """One page of the entries of a storage's folder, by name.

        Raises NotFound `storage-not-found`, `path-not-found`; Forbidden; InvalidInput `bad-path`, `path-is-link`,
        `bad-cursor`; Conflict `storage-not-here`; Unavailable when the storage does not answer.
        """
        begin = name_at(after)
        folder = await self._folder(actor, name)
        found = await self._looker().entries(name, folder, path, begin, limit, user=actor.user)
        shown = [FileView(each.name, each.kind, each.size, rfc3339(each.changed_at)) for each in found.entries]
        return Page(shown, name_cursor(found.next) if found.next else None)

    async def file(self, actor: Actor, name: str, path: str) -> tuple[int, AsyncIterator[bytes]]:
        """Return a file's size and its bytes, and record the read in the audit log.

        Raises the same as `storage_files`, and InvalidInput `not-a-file`.
        """
        folder = await self._folder(actor, name)
        found = await self._looker().file(name, folder, path, user=actor.user)
        resource = Resource("storage", name)
        decision = await self._context.check(actor, "storage.use", resource)
        await self._context.note(actor, "storage.read", resource, decision, path=path[:500], bytes=found[0])
        return found

    def _looker(self) -> Browser:
        if self._browser is None:
            self._browser = Browser()
        return self._browser

    async def _folder(self, actor: Actor, name: str) -> Folder:
        granted = await self._storages.get(actor, name)
        storage, own = granted.storage, granted.folder
        if own:
            await self._storages.check_own_folder(actor, name)
        if storage.type == "uri":
            return RemoteStorage(storage.uri, own)
        root = _root(storage)
        if not root:
            message = (
                f"The storage {name} ({storage.type}) is mounted for tasks alone; the server looks into folders, URIs, and "
                "what machines have mounted at hostPath."
            )
            raise Conflict("storage-not-here", message)
        user = await self._store.user(actor.user)
        return LocalFolder(root, own, lambda: account_of(None if user is None else user.uid))


def _root(storage: StorageDocument) -> str:
    return storage.host_path or (storage.path if storage.type == "folder" else "")


def _view(granted: Granted, groups: list[Group]) -> StorageView:
    storage = granted.storage
    return StorageView(
        storage.name,
        storage.type,
        storage.description,
        storage.share,
        storage.read_only,
        granted.default,
        storage.type == "uri" or bool(_root(storage)),
        tuple(group.name for group in groups if storage.name in group.storages or _ALL in group.storages),
    )
