"""Nudge stuck pods with claims by changing an annotation, so that their kubelet retries.

A kubelet that finds a claim or its driver not ready retries only after a minute, or when the pod changes. The
annotation counts the nudges. They also help a deleted pod that stays because its driver was away when the kubelet
unprepared its devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from corral.engines.kubernetes.devices.claim_state import claims_of
from corral.engines.kubernetes.watch.foreign_pods import TERMINAL
from corral.engines.kubernetes.watch.object_copy import Change
from corral.engines.kubernetes.watch.pod_structs import Pod

NUDGE: Final = "corral.dev/nudge"
"""The pod annotation that a nudge changes."""
FIRST_SECONDS: Final = 5.0
"""Seconds without progress after which a pod on its kubelet is nudged, even without a reported failure."""
LONGEST_SECONDS: Final = 30.0
_LETTING_GO_SECONDS: Final = 2.0
"""Seconds that a kubelet needs after the grace of a deleted pod."""


@dataclass(slots=True)
class Stuck:
    """A pod that has not made progress yet."""

    name: str
    claims: tuple[str, ...]
    leaving: bool
    due: float
    times: int = 0


class Nudges:
    """The pods to nudge, and when."""

    def __init__(self) -> None:
        self._stuck: dict[str, Stuck] = {}

    def fold(self, change: Change[Pod], now: float) -> None:
        """Fold the change of a pod."""
        pod = change.object
        meta = pod.metadata
        claims = claims_of(pod)
        if not claims:
            return
        leaving = bool(meta.deletion_timestamp)
        if change.gone or not (leaving or _waits(pod)):
            self._stuck.pop(meta.uid, None)
            return
        known = self._stuck.get(meta.uid)
        if known is None or known.leaving != leaving:
            grace = (meta.deletion_grace_period_seconds or 0) + _LETTING_GO_SECONDS if leaving else FIRST_SECONDS
            self._stuck[meta.uid] = Stuck(meta.name, claims, leaving, now + grace)

    def failed(self, uid: str, now: float) -> None:
        """Record that the pod's kubelet failed to prepare its devices. The first nudge is then due at once."""
        stuck = self._stuck.get(uid)
        if stuck is not None and not stuck.times:
            stuck.due = now

    def due(self, now: float, in_hand: Callable[[Stuck], bool]) -> Iterator[tuple[str, Stuck]]:
        """Yield the pods to nudge now, by UID. Each pod's next nudge is delayed with exponential backoff.

        `in_hand` returns whether a claim of the pod is about to be written, which makes a nudge too early.
        """
        for uid, stuck in list(self._stuck.items()):
            if stuck.due <= now and not in_hand(stuck):
                stuck.times += 1
                stuck.due = now + min(FIRST_SECONDS * 2.0 ** min(stuck.times, 10), LONGEST_SECONDS)
                yield uid, stuck

    def drop(self, uid: str) -> None:
        """Forget a pod that no longer exists."""
        self._stuck.pop(uid, None)


def _waits(pod: Pod) -> bool:
    """Return whether a kubelet accepted the pod but has not created its containers."""
    status = pod.status
    if status.phase in TERMINAL or not status.start_time:
        return False
    ready = any(each.type == "PodReadyToStartContainers" and each.status == "True" for each in status.conditions)
    begun = any(each.state.running or each.state.terminated for each in status.container_statuses)
    return not ready and not begun
