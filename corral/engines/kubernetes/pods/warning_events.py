"""Report Kubernetes' warning Events about a job's pods, such as a failing image, volume or probe.

Normal Events are not followed: a cluster writes five for every healthy pod. A repeated Event is reported at its first,
tenth, hundredth … time. Events from before this server opened were reported by the previous one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from corral.engines.kubernetes.api.resources import EVENTS
from corral.engines.kubernetes.pods.labels import attempt_named
from corral.engines.kubernetes.watch.node_structs import Event
from corral.engines.kubernetes.watch.object_copy import Change
from corral.engines.kubernetes.watch.reflector import Reflector
from corral.engines.kubernetes.watch.watch_source import Source
from corral.kernel.ids import AttemptId
from corral.model.launch import EngineEvent, Noted

_FIELDS: Final = "involvedObject.kind=Pod,type!=Normal"
_MOST: Final = 20
"""Reported Events per attempt."""
_MOST_MESSAGE: Final = 1_000
_MOST_ATTEMPTS: Final = 100_000


class PodEvents:
    """Reports Kubernetes' Events about the pods of this server's attempts to control."""

    def __init__(
        self,
        source: Source,
        namespace: str,
        *,
        known: Callable[[AttemptId], bool],
        tell: Callable[[EngineEvent], None],
        seed: int | str = 0,
    ) -> None:
        """`known` returns whether an attempt belongs to this engine."""
        self._events = Reflector(source, EVENTS, Event, namespace=namespace, fields=_FIELDS, seed=seed)
        self._known, self._tell = known, tell
        self._told: Counter[AttemptId] = Counter()

    async def keep(self) -> None:
        """Keep the copy up to date until cancelled."""
        await self._events.run()

    async def follow(self) -> None:
        """Report new Events until cancelled."""
        await self._events.synced.wait()
        before = set(self._events.items)
        while True:
            for change in await self._events.take():
                if change.object.key in before:
                    before.discard(change.object.key)
                elif not change.gone:
                    self._say(change)

    def _say(self, change: Change[Event]) -> None:
        event = change.object
        attempt = attempt_named(event.involved_object.name)
        times = max(event.count or 1, 1)
        if attempt is None or not self._known(attempt) or not _is_round(times):
            return
        if len(self._told) > _MOST_ATTEMPTS:
            self._told.clear()
        self._told[attempt] += 1
        if self._told[attempt] > _MOST:
            return
        words = " ".join(event.message.split())[:_MOST_MESSAGE]
        self._tell(Noted(attempt, event.reason or "Warning", words, times))


def _is_round(times: int) -> bool:
    """Return whether the number is 1, 10, 100, …"""
    return set(str(times)[1:]) <= {"0"} and str(times)[0] == "1"
