"""Decode lists and watch streams of one kind, at 30,000 events/s.

Chunks may have any size, break off or be invalid. A line is decoded once, straight into its event type's struct
(msgspec's tagged union). An object that cannot be decoded affects only itself. A line that is not JSON ends the
connection, since more may be lost. The API server accepts objects nested ten times deeper than Python's recursion limit
lets msgspec decode; such an object cannot be decoded either.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeVar

import msgspec

from corral.engines.kubernetes.api.errors import Status
from corral.engines.kubernetes.watch.pod_structs import Bare, Meta, Object
from corral.kernel.errors import Unavailable

T = TypeVar("T", bound=Object)

MOST_LINE: Final = 8 * 2**20
"""Bytes of one event. etcd's default limit for an object is 1.5 MB."""
_MOST_DEPTH: Final = 10_000
"""Levels of nesting of an object: the limit of Go's JSON, and of every API server."""


class Added(msgspec.Struct, Generic[T], tag_field="type", tag="ADDED", gc=False):
    """An object was created."""

    object: T


class Modified(msgspec.Struct, Generic[T], tag_field="type", tag="MODIFIED", gc=False):
    """An object was changed."""

    object: T


class Deleted(msgspec.Struct, Generic[T], tag_field="type", tag="DELETED", gc=False):
    """An object was deleted; this was its final state."""

    object: T


class Bookmark(msgspec.Struct, tag_field="type", tag="BOOKMARK", gc=False):
    """All changes up to this version were sent."""

    object: Bare


class Failed(msgspec.Struct, tag_field="type", tag="ERROR", gc=False):
    """The watch cannot go on."""

    object: Status


class Unreadable(msgspec.Struct, gc=False):
    """An object that could not be decoded as its kind; only its metadata was."""

    object: Bare
    deleted: bool
    reason: str


WatchEvent = Added[T] | Modified[T] | Deleted[T] | Bookmark | Failed | Unreadable


class Page(msgspec.Struct, Generic[T]):
    """One page of a list."""

    version: str
    proceed: str
    """The token of the next page; "" after the last."""
    objects: list[T]
    unreadable: list[Bare]


class Reader(Generic[T]):
    """Decodes the pages and watch streams of one kind."""

    def __init__(self, kind: type[T]) -> None:
        events: Any = Added[kind] | Modified[kind] | Deleted[kind] | Bookmark | Failed  # type: ignore[valid-type]
        self._event = msgspec.json.Decoder(events)
        self._list: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_List[kind])  # type: ignore[valid-type]
        self._object = msgspec.json.Decoder(kind)
        self._tail = b""

    def page(self, body: bytes) -> Page[T]:
        """Decode a page of a list. Raises Unavailable for invalid content."""
        unreadable: list[Bare] = []
        try:
            try:
                found = self._list.decode(body)
                objects = found.items or []
            except (msgspec.ValidationError, RecursionError):
                with _deeply():
                    found = _RAW_LIST.decode(body)
                objects = list(self._readable(found.items or [], unreadable))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _garbage("list", error) from None
        if not found.metadata.resource_version:
            raise Unavailable("kubernetes-garbage", "The cluster answered with a list that has no resource version.")
        return Page(found.metadata.resource_version, found.metadata.proceed or "", objects, unreadable)

    def begin(self) -> None:
        """Start a new watch: forget the unfinished line of the previous one."""
        self._tail = b""

    def feed(self, chunk: bytes) -> Iterator[Any]:
        """Yield the events (`WatchEvent[T]`) that `chunk` completes.

        Raises Unavailable for content that is no event.
        """
        data = self._tail + chunk if self._tail else chunk
        view, begin, end = memoryview(data), 0, data.find(b"\n")
        decode = self._event.decode
        while end >= 0:
            line, begin = view[begin:end], end + 1
            end = data.find(b"\n", begin)
            try:
                yield decode(line)
            except (msgspec.ValidationError, RecursionError) as error:
                yield _unreadable(line, str(error))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                if line.tobytes().strip():
                    raise _garbage("watch event", error) from None
        self._tail = data[begin:]
        if len(self._tail) > MOST_LINE:
            raise Unavailable("kubernetes-garbage", f"The cluster sent an event of more than {MOST_LINE} bytes.")

    def _readable(self, items: list[msgspec.Raw], unreadable: list[Bare]) -> Iterator[T]:
        for item in items:
            try:
                yield self._object.decode(item)
            except (msgspec.ValidationError, RecursionError):
                with _deeply():
                    unreadable.append(_BARE.decode(item))


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    proceed: str | None = msgspec.field(name="continue", default=None)


class _List(msgspec.Struct, Generic[T]):
    metadata: _ListMeta
    items: list[T] | None = None


class _RawList(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _BareEvent(msgspec.Struct):
    type: str
    object: Bare


_RAW_LIST: Final = msgspec.json.Decoder(_RawList)
_BARE: Final = msgspec.json.Decoder(Bare)
_BARE_EVENT: Final = msgspec.json.Decoder(_BareEvent)


@contextmanager
def _deeply() -> Iterator[None]:
    """Raise the recursion limit to skip nested parts. A skipped level takes 100 bytes of the stack."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + _MOST_DEPTH)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def metadata_of(body: bytes) -> Meta:
    """Return an object's metadata, however deeply the rest is nested. Raises Unavailable for invalid content."""
    try:
        with _deeply():
            return _BARE.decode(body).metadata
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _garbage("object", error) from None


def _unreadable(line: memoryview, reason: str) -> Unreadable:
    try:
        with _deeply():
            event = _BARE_EVENT.decode(line)
    except msgspec.DecodeError as error:
        raise _garbage("watch event", error) from None
    return Unreadable(event.object, event.type == "DELETED", reason)


def _garbage(what: str, error: Exception) -> Unavailable:
    return Unavailable("kubernetes-garbage", f"The cluster's answer is not a valid {what} ({error}).")
