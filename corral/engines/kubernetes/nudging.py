"""Why: a kubelet that found a claim or its driver not ready tries again only after a minute, or when the pod changes.

So a pod with claims that makes no progress is changed: its annotation counts the times. The same helps a pod that is
deleted and does not go, because its driver was away when the kubelet asked it to let go of its devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from corral.engines.kubernetes.claimbook import claims_of
from corral.engines.kubernetes.mirror import Change
from corral.engines.kubernetes.objects import Pod
from corral.engines.kubernetes.others import TERMINAL

NUDGE: Final = "corral.dev/nudge"
"""The annotation of pods that is changed."""
FIRST_SECONDS: Final = 5.0
"""A pod that its kubelet took, and that has made no progress for so long, is nudged though nothing failed audibly."""
LONGEST_SECONDS: Final = 30.0
_LETTING_GO_SECONDS: Final = 2.0
"""What a kubelet needs after the grace of a deleted pod."""


@dataclass(slots=True)
class Stuck:
    """A pod that has not made progress yet."""

    name: str
    claims: tuple[str, ...]
    leaving: bool
    due: float
    times: int = 0


class Nudges:
    """Which pods are to be nudged when."""

    def __init__(self) -> None:
        self._stuck: dict[str, Stuck] = {}

    def fold(self, change: Change[Pod], now: float) -> None:
        """Take in what happened to a pod."""
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
        """The pod's kubelet said that its devices could not be prepared: the first time it is nudged at once."""
        stuck = self._stuck.get(uid)
        if stuck is not None and not stuck.times:
            stuck.due = now

    def due(self, now: float, in_hand: Callable[[Stuck], bool]) -> Iterator[tuple[str, Stuck]]:
        """The pods, by UID, that are to be nudged now; each later and later after that.

        `in_hand` tells of which a claim is about to be written, so that it is too early.
        """
        for uid, stuck in list(self._stuck.items()):
            if stuck.due <= now and not in_hand(stuck):
                stuck.times += 1
                stuck.due = now + min(FIRST_SECONDS * 2.0 ** min(stuck.times, 10), LONGEST_SECONDS)
                yield uid, stuck

    def drop(self, uid: str) -> None:
        """There is no such pod."""
        self._stuck.pop(uid, None)


def _waits(pod: Pod) -> bool:
    """Whether a kubelet took the pod and has not come so far as to make its containers."""
    status = pod.status
    if status.phase in TERMINAL or not status.start_time:
        return False
    ready = any(each.type == "PodReadyToStartContainers" and each.status == "True" for each in status.conditions)
    begun = any(each.state.running or each.state.terminated for each in status.container_statuses)
    return not ready and not begun
