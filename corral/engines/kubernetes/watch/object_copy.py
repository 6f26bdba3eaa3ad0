"""A local copy of cluster objects that buffers changes for a slower consumer.

Objects are keyed by UID, so an object and a later one of the same name differ. At most one change per object waits,
with its latest state. Changes of deleted objects are never dropped. (client-go's DeltaFIFO keeps every delta instead.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

import msgspec

from corral.engines.kubernetes.watch.deduplication import Pool
from corral.engines.kubernetes.watch.pod_structs import Bare, Object

T = TypeVar("T", bound=Object)


class Change(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """The latest change of one object."""

    object: T
    gone: bool = False
    final: bool = True
    """For a deleted object: whether this is its final state, or only the last state seen."""


class Mirror(Generic[T]):
    """The objects by key, and the changes not taken yet."""

    def __init__(self) -> None:
        self.items: dict[str, T] = {}
        """Every object by its key (`Object.key`), as last seen. Readers must not change it."""
        self.unread: set[str] = set()
        """The keys of existing objects that could never be decoded."""
        self._waiting: dict[str, Change[T]] = {}
        self._pool = Pool()

    def __len__(self) -> int:
        """Return the number of waiting changes."""
        return len(self._waiting)

    def put(self, thing: T) -> None:
        """Add or update an object."""
        key = thing.key
        known = self.items.get(key)
        if known is not None and known.metadata.resource_version == thing.metadata.resource_version:
            return
        self._pool.share(thing)
        self.unread.discard(key)
        self.items[key] = thing
        self._waiting[key] = Change(thing)

    def gone(self, thing: T) -> None:
        """Remove a deleted object, given its final state."""
        key = thing.key
        self.items.pop(key, None)
        self.unread.discard(key)
        self._waiting[key] = Change(thing, gone=True)

    def lost(self, key: str) -> None:
        """Remove a deleted object whose final state was not seen."""
        last = self.items.pop(key, None)
        self.unread.discard(key)
        if last is not None:
            self._waiting[key] = Change(last, gone=True, final=False)

    def keep(self, key: str) -> None:
        """Record that the object exists but could not be decoded. It stays as last seen."""
        if key not in self.items:
            self.unread.add(key)

    def known(self, things: Iterable[T]) -> list[T]:
        """Return the list with equal objects replaced by the copies already held."""
        return [self._kept(thing) for thing in things]

    def replace(self, things: list[T], unreadable: Iterable[Bare] = ()) -> None:
        """Replace the whole content. Objects in `unreadable` still exist and stay as last seen.

        Deletions are queued before additions: an object may have been replaced by one of the same name.
        """
        dark = {bare.key for bare in unreadable}
        present = {thing.key for thing in things} | dark
        for key in [key for key in self.items if key not in present]:
            self.lost(key)
        self.unread = dark - self.items.keys()
        for thing in things:
            self.put(thing)

    def take(self, most: int) -> list[Change[T]]:
        """Take up to `most` changes, oldest first."""
        if len(self._waiting) <= most:
            taken, self._waiting = list(self._waiting.values()), {}
            return taken
        keys = [key for key, _ in zip(self._waiting, range(most), strict=False)]
        return [self._waiting.pop(key) for key in keys]

    def _kept(self, thing: T) -> T:
        known = self.items.get(thing.key)
        same = known is not None and known.metadata.resource_version == thing.metadata.resource_version
        return known if same and known is not None else thing
