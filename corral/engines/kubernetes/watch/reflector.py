"""Keep a local copy of one kind of cluster objects by list and watch.

List in pages, watch from there, and resume where the connection broke. List again when the server no longer knows that
version (410, also of a continue token). `synced` is set only after a complete list. Resource versions are opaque and
waits relative, so skewed clocks do not matter. The pattern is client-go's Reflector (tools/cache/reflector.go);
differences are noted where they occur.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from typing import Any, Generic, TypeVar

from corral.engines.kubernetes.api.backoff import Backoff
from corral.engines.kubernetes.api.errors import Expired, refusal
from corral.engines.kubernetes.api.resources import Call, Resource
from corral.engines.kubernetes.watch.decoder import Added, Deleted, Failed, Modified, Reader, Unreadable
from corral.engines.kubernetes.watch.object_copy import Change, Mirror
from corral.engines.kubernetes.watch.pod_structs import Bare, Object
from corral.engines.kubernetes.watch.watch_source import Pace, Source
from corral.kernel.draw import draw_between
from corral.kernel.errors import CorralError, Forbidden, TooManyRequests, Unauthenticated, Unavailable

T = TypeVar("T", bound=Object)
_log = logging.getLogger(__name__)


class Reflector(Generic[T]):
    """A copy of one kind of object that follows the cluster while `run` runs."""

    def __init__(
        self,
        source: Source,
        resource: Resource,
        kind: type[T],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        pace: Pace | None = None,
        seed: int | str = 0,
    ) -> None:
        """`labels` and `fields` are selectors in the syntax of `kubectl`; `seed` seeds the random waits."""
        self._source, self._pace, self._seed = source, pace or Pace(), seed
        self._list_call = Call("list", resource, namespace)
        self._watch_call = Call("watch", resource, namespace)
        wanted = {"labelSelector": labels, "fieldSelector": fields}
        self._selectors = {name: value for name, value in wanted.items() if value}
        self._reader = Reader(kind)
        self._mirror: Mirror[T] = Mirror()
        self._backoff = Backoff(
            low=self._pace.backoff_low, high=self._pace.backoff_high, seed=seed, ids=(self._list_call.path, "backoff")
        )
        self._version = ""
        self._expired_pages = 0
        self._opened_at: float | None = None
        self._warned: set[str] = set()
        """The keys of existing objects whose last state could not be decoded."""
        self._arrived, self._room = asyncio.Event(), asyncio.Event()
        self.synced = asyncio.Event()
        """Set after the first complete list. From then on `items` is a state that the cluster had, or a later one."""
        self.trouble: CorralError | None = None
        """Why the copy is not followed at present; None while it is."""
        self.heard_at = 0.0
        """The loop's time when the cluster last answered."""
        self.lists, self.watches, self.unreadable = 0, 0, 0
        """The numbers of lists, watches, and objects that could not be decoded."""

    @property
    def items(self) -> Mapping[str, T]:
        """Every object by its key (UID), as last seen."""
        return self._mirror.items

    @property
    def there(self) -> Collection[str]:
        """The keys of all existing objects, including those that could never be decoded."""
        read, unread = self._mirror.items.keys(), self._mirror.unread
        return read | unread if unread else read

    async def take(self, most: int = 10_000) -> list[Change[T]]:
        """Wait for changes and take up to `most`: the latest state of each object, deletions included."""
        await self._arrived.wait()
        taken = self._mirror.take(most)
        if not self._mirror:
            self._arrived.clear()
        self._room.set()
        return taken

    async def run(self) -> None:
        """Follow the cluster until cancelled. No failure ends it; `trouble` is the last one."""
        loop = asyncio.get_running_loop()
        while True:
            self._opened_at = None
            error: CorralError | None = None
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except CorralError as caught:
                error = caught
                if not isinstance(error, Unavailable | TooManyRequests | Unauthenticated | Forbidden):
                    self._version = ""
            if self._opened_at is not None and loop.time() - self._opened_at >= self._pace.at_once:
                self._backoff.reset()
                if error is None:
                    continue
            if not isinstance(error, Expired):
                self.trouble = error or _ended_at_once(self._watch_call)
            await asyncio.sleep(self._backoff.next(_asked(error)))

    async def _list(self) -> None:
        """Take in a complete list. After two expired continue tokens in a row it is requested in one piece."""
        pace = self._pace
        self.lists += 1
        size = {} if self._expired_pages >= 2 else {"limit": str(pace.page)}
        objects: list[T] = []
        unreadable: list[Bare] = []
        version, token = "", ""
        while True:
            params = {**self._selectors, **size, **({"continue": token} if token else {})}
            try:
                body = await self._source.ask(self._list_call, params=params, deadline=pace.list_deadline)
            except Expired:
                self._expired_pages += 1
                raise
            page = self._reader.page(body)
            self._heard_it()
            objects += self._mirror.known(page.objects)
            unreadable += page.unreadable
            version, token = version or page.version, page.proceed
            if not token:
                break
        self._expired_pages = 0
        self._mirror.replace(objects, unreadable)
        self.unreadable += len(unreadable)
        self._warned &= {bare.key for bare in unreadable}
        for bare in unreadable:
            self._warn(bare)
        self._version = version
        self._tell()
        self.synced.set()

    async def _watch(self) -> None:
        """Take in a watch's events until the server ends it."""
        pace = self._pace
        self.watches += 1
        span = draw_between(pace.watch_shortest, pace.watch_longest, self._seed, self._watch_call.path, self.watches)
        params = {
            **self._selectors,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(int(span)),
        }
        async with self._source.stream(self._watch_call, params=params, idle=pace.idle) as chunks:
            self._heard_it()
            self._opened_at = self.heard_at
            self._reader.begin()
            async for chunk in chunks:
                self._heard_it()
                try:
                    for event in self._reader.feed(chunk):
                        self._apply(event)
                finally:
                    self._tell()
                while len(self._mirror) >= pace.waiting:
                    self._room.clear()
                    await self._room.wait()

    def _apply(self, event: Any) -> None:
        """Apply one `WatchEvent[T]`."""
        if isinstance(event, Modified | Added):
            self._mirror.put(event.object)
            if self._warned:
                self._warned.discard(event.object.key)
        elif isinstance(event, Deleted):
            self._mirror.gone(event.object)
            self._warned.discard(event.object.key)
        elif isinstance(event, Failed):
            raise refusal(self._watch_call, event.object)
        elif isinstance(event, Unreadable):
            self.unreadable += 1
            if event.deleted:
                self._mirror.lost(event.object.key)
                self._warned.discard(event.object.key)
            else:
                self._mirror.keep(event.object.key)
                self._warn(event.object, event.reason)
        self._version = event.object.metadata.resource_version or self._version

    def _warn(self, bare: Bare, reason: str = "") -> None:
        """Log once that an object cannot be decoded, until it can be or is gone."""
        if bare.key not in self._warned:
            self._warned.add(bare.key)
            meta, title = bare.metadata, self._list_call.resource.title
            where = f"{meta.namespace}/{meta.name}".lstrip("/")
            why = f" ({reason[:200]})" if reason else ""
            _log.warning("%s %s cannot be read%s; it counts as last seen, or not at all", title, where, why)

    def _tell(self) -> None:
        if self._mirror:
            self._arrived.set()

    def _heard_it(self) -> None:
        self.trouble = None
        self.heard_at = asyncio.get_running_loop().time()


def _asked(error: CorralError | None) -> float | None:
    """Return the wait that a busy server requested."""
    seconds = error.details.get("retry_after") if isinstance(error, TooManyRequests) else None
    return seconds if isinstance(seconds, float) else None


def _ended_at_once(call: Call) -> Unavailable:
    return Unavailable("kubernetes-ended", f"The cluster ends every answer to {call} as soon as it begins.")
