"""Why: between a cluster that changes as it likes and a consumer that is sometimes busy stands one copy of what is.

The copy is kept by UID, so that an object and a later one of the same name are two. What the consumer has not taken yet
is one entry an object, its latest state: however much happens, no more waits than there are objects, except for those
that are gone, whose ends are never dropped. (client-go's DeltaFIFO keeps every delta of an object instead.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

import msgspec

from corral.engines.kubernetes.objects import Bare, Object
from corral.engines.kubernetes.sharing import Pool

T = TypeVar("T", bound=Object)


class Change(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """The latest about one object."""

    object: T
    gone: bool = False
    final: bool = True
    """Of an object that is gone: whether this is its final state, or only the last that was seen before it went."""


class Mirror(Generic[T]):
    """The objects by key, and what of them was not taken yet."""

    def __init__(self) -> None:
        self.items: dict[str, T] = {}
        """Every object by its key (`Object.key`), as last seen; not to be changed by readers."""
        self.unread: set[str] = set()
        """The keys of those that are there and could never be read."""
        self._waiting: dict[str, Change[T]] = {}
        self._pool = Pool()

    def __len__(self) -> int:
        """How many changes wait."""
        return len(self._waiting)

    def put(self, thing: T) -> None:
        """The object is now so."""
        key = thing.key
        known = self.items.get(key)
        if known is not None and known.metadata.resource_version == thing.metadata.resource_version:
            return
        self._pool.share(thing)
        self.unread.discard(key)
        self.items[key] = thing
        self._waiting[key] = Change(thing)

    def gone(self, thing: T) -> None:
        """The object was deleted, and this was its final state."""
        key = thing.key
        self.items.pop(key, None)
        self.unread.discard(key)
        self._waiting[key] = Change(thing, gone=True)

    def lost(self, key: str) -> None:
        """The object is gone, and its final state was not seen."""
        last = self.items.pop(key, None)
        self.unread.discard(key)
        if last is not None:
            self._waiting[key] = Change(last, gone=True, final=False)

    def keep(self, key: str) -> None:
        """There is such an object, and it could not be read: it stays as last seen, if it was."""
        if key not in self.items:
            self.unread.add(key)

    def known(self, things: Iterable[T]) -> list[T]:
        """The same list, with the copies that are kept already in place of equal ones."""
        return [self._kept(thing) for thing in things]

    def replace(self, things: list[T], unreadable: Iterable[Bare] = ()) -> None:
        """These are all objects that there are; those that could not be read are still there, as last seen.

        What is gone waits before what is new: an object may have been replaced by one of its name.
        """
        dark = {bare.key for bare in unreadable}
        present = {thing.key for thing in things} | dark
        for key in [key for key in self.items if key not in present]:
            self.lost(key)
        self.unread = dark - self.items.keys()
        for thing in things:
            self.put(thing)

    def take(self, most: int) -> list[Change[T]]:
        """Up to `most` changes, the longest waiting first; they no longer wait."""
        if len(self._waiting) <= most:
            taken, self._waiting = list(self._waiting.values()), {}
            return taken
        keys = [key for key, _ in zip(self._waiting, range(most), strict=False)]
        return [self._waiting.pop(key) for key in keys]

    def _kept(self, thing: T) -> T:
        known = self.items.get(thing.key)
        same = known is not None and known.metadata.resource_version == thing.metadata.resource_version
        return known if same and known is not None else thing
