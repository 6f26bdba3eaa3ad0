"""Why: what a watch says arrives in pieces of any size, may break off or be nonsense, and must be read at 30,000 events/s.

A line is decoded once, straight into the struct that its type calls for (msgspec's tagged union: the object is not
looked at before its type is known, nor twice). An object that cannot be read costs only itself; a line that is no JSON
costs the connection, since nobody knows what else it lost. Whoever may write an object may nest it as deeply as the API
server takes it, ten times deeper than Python's limit lets msgspec read: such an object cannot be read either.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeVar

import msgspec

from corral.engines.kubernetes.objects import Bare, Meta, Object
from corral.engines.kubernetes.refusals import Status
from corral.kernel.errors import Unavailable

T = TypeVar("T", bound=Object)

MOST_LINE: Final = 8 * 2**20
"""Bytes of one event; etcd takes 1.5 MB for an object unless told otherwise."""
_MOST_DEPTH: Final = 10_000
"""How deeply an object may be nested: the limit of Go's JSON, and of every API server."""


class Added(msgspec.Struct, Generic[T], tag_field="type", tag="ADDED", gc=False):
    """There is a new object."""

    object: T


class Modified(msgspec.Struct, Generic[T], tag_field="type", tag="MODIFIED", gc=False):
    """The object is now so."""

    object: T


class Deleted(msgspec.Struct, Generic[T], tag_field="type", tag="DELETED", gc=False):
    """The object is gone; this was its final state."""

    object: T


class Bookmark(msgspec.Struct, tag_field="type", tag="BOOKMARK", gc=False):
    """Everything up to this version was told."""

    object: Bare


class Failed(msgspec.Struct, tag_field="type", tag="ERROR", gc=False):
    """The watch cannot go on."""

    object: Status


class Unreadable(msgspec.Struct, gc=False):
    """The object is not what its kind should be; only its metadata was read."""

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
    """Turns the pages and watches of one kind into objects of it."""

    def __init__(self, kind: type[T]) -> None:
        events: Any = Added[kind] | Modified[kind] | Deleted[kind] | Bookmark | Failed  # type: ignore[valid-type]
        self._event = msgspec.json.Decoder(events)
        self._list: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_List[kind])  # type: ignore[valid-type]
        self._object = msgspec.json.Decoder(kind)
        self._tail = b""

    def page(self, body: bytes) -> Page[T]:
        """A page of a list; raises Unavailable when it is none."""
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
        """A new watch begins: forget the unfinished line of the one before."""
        self._tail = b""

    def feed(self, chunk: bytes) -> Iterator[Any]:
        """The events (`WatchEvent[T]`) that `chunk` completes; raises Unavailable for what is no event at all."""
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
    """Skip what is nested as deeply as an object may be; what is skipped costs 100 bytes of the stack a level."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + _MOST_DEPTH)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def metadata_of(body: bytes) -> Meta:
    """The metadata of one object, however deeply the rest of it is nested; raises Unavailable when it is none."""
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
    return Unavailable("kubernetes-garbage", f"The cluster answered with something that is no {what} ({error}).")
