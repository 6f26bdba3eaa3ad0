"""The storages that a user may use, as granted by groups; the same rules apply to lists and to jobs."""

from __future__ import annotations

from typing import Final, NamedTuple

from corral.kernel.errors import Conflict, NotFound
from corral.model.configuration import read_revision
from corral.service.access.rules import Resource, decide
from corral.service.actor import Actor
from corral.service.context import Context
from corral.spec.job import UnifiedJob
from corral.spec.storage import StorageDocument, StorageUse

_MOST: Final = 1000
"""Most storages listed."""


class Granted(NamedTuple):
    """A storage that the actor may use, and whether it is one of the actor's default storages."""

    storage: StorageDocument
    default: bool
    folder: str = ""
    """The user's own folder in it; "" is the whole storage."""


class Storages:
    """Storages as their users see them; `configuration` defines them."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    async def all(self, actor: Actor) -> list[Granted]:
        """Every storage that the actor may use, by name."""
        page = await self._store.documents(kind="Storage", limit=_MOST)
        found = [read_revision(each) for each in page.items]
        defaults, folder = await self._default_storages(actor), await self.folder_of(actor)
        return [
            Granted(each, each.name in defaults, "" if each.share else folder)
            for each in found
            if isinstance(each, StorageDocument) and self._may_use_storage(actor, each.name)
        ]

    async def get(self, actor: Actor, name: str) -> Granted:
        """One storage.

        Raises NotFound `storage-not-found`, Forbidden when no group of the actor's grants it.
        """
        found = await self._storage(name)
        if found is None:
            raise storage_not_found(name)
        await self._context.check(actor, "storage.use", Resource("storage", name))
        folder = "" if found.share else await self.folder_of(actor)
        return Granted(found, name in await self._default_storages(actor), folder)

    async def folder_of(self, actor: Actor) -> str:
        """The name of the actor's folder in storages with one folder for each user."""
        user = await self._store.user(actor.user)
        return actor.user if user is None else user.folder

    async def for_job(self, actor: Actor, job: UnifiedJob) -> UnifiedJob:
        """The job with the user's default storages in place of unnamed ones.

        Raises NotFound `storage-not-found` both for a missing storage and for one that is not granted, so that callers
        cannot tell which; Conflict `folder-of-another` for one that may take another user's folder for the actor's.
        """
        asked = job.spec.storages
        if not asked:
            return job
        uses: list[StorageUse] = []
        for use in asked:
            if use.name:
                await self._check_storage(actor, use.name)
                uses.append(use)
            else:
                uses += [StorageUse(name=name) for name in await self._default_storages(actor)]
        known: dict[str, StorageUse] = {}
        for use in uses:
            known.setdefault(use.where, use)
        for name in sorted({use.name for use in known.values()}):
            await self.check_own_folder(actor, name)
        return job.model_copy(update={"spec": job.spec.model_copy(update={"storages": list(known.values())})})

    async def _check_storage(self, actor: Actor, name: str) -> None:
        resource = Resource("storage", name)
        decision = decide(actor, "storage.use", resource)
        if not decision.allowed:
            await self._context.note(actor, "storage.use", resource, decision)
        if not decision.allowed or await self._storage(name) is None:
            raise storage_not_found(name)

    async def check_own_folder(self, actor: Actor, name: str) -> None:
        """Check that the storage keeps the actor's folder apart from those of other users.

        Raises Conflict `folder-of-another`.
        """
        storage = await self._storage(name)
        if storage is None or storage.share or not storage.may_fold_case:
            return
        user = await self._store.user(actor.user)
        other = "" if user is None else await self._store.older_namesake(user)
        if other:
            message = (
                f"The storage {name} may take your folder for that of {other}, whose name differs from yours only by its "
                "case; leave the storage out, or ask an administrator for an account of another name."
            )
            raise Conflict("folder-of-another", message)

    async def _storage(self, name: str) -> StorageDocument | None:
        revision = await self._store.document("Storage", name)
        if revision is None or revision.deleted:
            return None
        found = read_revision(revision)
        return found if isinstance(found, StorageDocument) else None

    async def _default_storages(self, actor: Actor) -> list[str]:
        """The actor's default storages: the first that each group names, if it exists."""
        user = await self._store.user(actor.user)
        memberships = actor.groups if user is None else user.memberships
        groups = {group.name: group for group in await self._store.groups()}
        named = [groups[name].storages[0] for name in memberships if name in groups and groups[name].storages]
        return [name for name in dict.fromkeys(named) if await self._storage(name) is not None]

    def _may_use_storage(self, actor: Actor, name: str) -> bool:
        return decide(actor, "storage.use", Resource("storage", name)).allowed


def storage_not_found(name: str) -> NotFound:
    """The refusal for a storage that is missing or not granted."""
    return NotFound("storage-not-found", f"Storage {name[:200]} is not found.")
