"""Why: which device is held by whom, and which claim is of no more use, is known from claims and pods as last seen.

Claims of Corral's outlive single tasks: tasks of one node may share one. Then a device whose task ended is still the
claim's, and the next task that is given it uses the same claim; a claim is of no use when no pod that uses it is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from corral.engines.kubernetes.claims import ResourceClaim
from corral.engines.kubernetes.grants import Plan, as_planned, plan_of
from corral.engines.kubernetes.mirror import Change
from corral.engines.kubernetes.objects import Pod
from corral.engines.kubernetes.others import TERMINAL
from corral.engines.kubernetes.pods import SERVER_LABEL
from corral.engines.kubernetes.slices import Named

UNUSED_SECONDS: Final = 30.0
"""A claim that no pod ever used is of no use after this long: its server was killed, or refused its pods."""
_FIRST_PAUSE: Final = 0.25
_LONGEST_PAUSE: Final = 30.0
_UNSEEN_SECONDS: Final = 10.0
"""So long a pod that was just created may not have been seen."""


@dataclass(slots=True)
class User:
    """One pod that uses a claim."""

    name: str
    since: float
    requests: frozenset[str]
    """Which of the claim's requests are its own; empty: all of them."""
    live: bool = True
    """Whether it may still use its devices."""


@dataclass(slots=True)
class Ours:
    """One claim of this server's."""

    name: str
    plan: Plan
    since: float
    """When it was first known here, by the loop's clock."""
    claim: ResourceClaim | None = None
    """As last seen; None before that."""
    users: dict[str, User] = field(default_factory=dict)
    """By UID."""
    used: bool = False
    """Whether a pod ever used it."""
    busy: int = 0
    """How many starts are just writing it or its pods."""
    reported: bool = False
    """Whether somebody was told that others changed it."""
    leaving: bool = False
    """Whether this server asked for its deletion."""
    not_before: float = 0.0
    """When what the cluster refused of it is tried again, by the loop's clock."""
    pause: float = 0.0

    def refused(self, now: float) -> None:
        """A write to it failed: the next one waits, ever longer."""
        self.pause = min(max(_FIRST_PAUSE, 2 * self.pause), _LONGEST_PAUSE)
        self.not_before = now + self.pause

    @property
    def live(self) -> dict[str, str]:
        """The names of the pods that may use their devices, by UID."""
        return {uid: user.name for uid, user in self.users.items() if user.live}

    def user_of(self, request: str, *, other_than: str) -> str:
        """Another pod that may use the devices of a request; "" for none."""
        mine = (user for user in self.users.values() if user.live and (not user.requests or request in user.requests))
        return next((user.name for user in mine if user.name != other_than), "")

    @property
    def unsettled(self) -> bool:
        """Whether it lacks its allocation, or a pod that uses it lacks its right to."""
        if self.claim is None or self.busy or not self.live:
            return False
        reserved = {each.uid for each in self.claim.status.reserved_for}
        return self.claim.status.allocation is None or not self.live.keys() <= reserved

    @property
    def contrary(self) -> bool:
        """Whether somebody else gave it other devices; that is for ever."""
        return self.claim is not None and bool(self.claim.status.allocation) and not as_planned(self.claim, self.plan)


class ClaimBook:
    """All claims of the cluster, and the pods of this server that use claims."""

    def __init__(self, server: str, namespace: str) -> None:
        self._server, self._namespace = server, namespace
        self.ours: dict[str, Ours] = {}
        """By name."""
        self.touched: set[str] = set()
        """The names of claims that something happened to; whoever looks clears it."""
        self._unused: set[str] = set()
        self._others: dict[str, tuple[Named, ...]] = {}
        self._held: dict[Named, dict[str, str]] = {}
        self._given: dict[Named, str] = {}

    def holder(self, device: Named) -> str:
        """The claim (`namespace/name`) by which somebody else holds a device; "" for none."""
        return next(iter(self._held.get(device, {}).values()), "")

    def giving(self, device: Named) -> Ours | None:
        """This server's claim that holds a device and that pods still use, or are about to."""
        found = self.ours.get(self._given.get(device, ""))
        return found if found is not None and (found.live or found.busy) else None

    def expect(self, name: str, plan: Plan, now: float) -> Ours:
        """The claim that is about to be made."""
        found = self.ours.setdefault(name, Ours(name, plan, now))
        found.plan = plan
        self._unused.add(name)
        self._give(found)
        return found

    def use(self, pod: Pod, now: float) -> None:
        """A pod was created, and is there, as far as is known."""
        for name, requests in uses_of(pod).items():
            found = self.ours.get(name)
            if found is not None:
                found.used = True
                found.users.setdefault(pod.metadata.uid, User(pod.metadata.name, now, requests))
                self._unused.discard(name)

    def fold_claim(self, change: Change[ResourceClaim], now: float) -> set[Named]:
        """Take in what happened to a claim; the devices that others hold now and did not before, or no longer."""
        claim = change.object
        if claim.metadata.labels.get(SERVER_LABEL) == self._server and claim.metadata.namespace == self._namespace:
            self._fold_ours(claim, now, gone=change.gone)
            return set()
        key = claim.key
        held = () if change.gone else _held(claim)
        before = self._others.pop(key, ())
        for device in before:
            self._held[device].pop(key, None)
            if not self._held[device]:
                del self._held[device]
        if held:
            self._others[key] = held
        for device in held:
            self._held.setdefault(device, {})[key] = f"{claim.metadata.namespace}/{claim.metadata.name}"
        return set(before) ^ set(held)

    def fold_pod(self, change: Change[Pod], now: float) -> None:
        """Take in what happened to a pod of this server."""
        pod = change.object
        for name, requests in uses_of(pod).items():
            found = self.ours.get(name)
            if found is None:
                found = self.ours[name] = Ours(name, Plan(pod.spec.node_name), now)
            uid = pod.metadata.uid
            if change.gone:
                found.users.pop(uid, None)
                if not found.users:
                    self._unused.add(name)
                self.drop_if_gone(found)
            else:
                found.used = True
                user = found.users.setdefault(uid, User(pod.metadata.name, now, requests))
                user.live = pod.status.phase not in TERMINAL
                self._unused.discard(name)
            self.touched.add(name)

    def miss(self, there: frozenset[str], now: float) -> None:
        """Forget users that came and went unseen; `there` are the UIDs of all pods that are."""
        for name, found in self.ours.items():
            for uid, user in list(found.users.items()):
                if uid not in there and now - user.since > _UNSEEN_SECONDS:
                    del found.users[uid]
                    self._unused.add(name)
                    self.touched.add(name)

    def useless(self, now: float) -> Iterator[Ours]:
        """The claims that are to be deleted."""
        for found in [self.ours[name] for name in self._unused]:
            if found.claim is None or found.busy or found.users or found.leaving or now < found.not_before:
                continue
            if found.used or now - found.since >= UNUSED_SECONDS:
                yield found

    def drop_if_gone(self, found: Ours) -> None:
        """Forget a claim that is not there and that nobody uses."""
        if found.claim is not None or found.users or found.busy:
            return
        del self.ours[found.name]
        self._unused.discard(found.name)
        for device in found.plan.devices:
            if self._given.get(device) == found.name:
                del self._given[device]

    def _fold_ours(self, claim: ResourceClaim, now: float, *, gone: bool) -> None:
        name = claim.metadata.name
        found = self.ours.get(name)
        if found is None:
            if gone:
                return
            found = self.ours[name] = Ours(name, plan_of(claim) or Plan(""), now)
            self._unused.add(name)
        self.touched.add(name)
        if gone:
            found.claim = None
            self.drop_if_gone(found)
            return
        if found.claim is None and not found.plan.grants:
            found.plan = plan_of(claim) or found.plan
        found.claim = claim
        self._give(found)

    def _give(self, found: Ours) -> None:
        for device in found.plan.devices:
            if self.giving(device) is None:
                self._given[device] = found.name


def uses_of(pod: Pod) -> dict[str, frozenset[str]]:
    """By the name of each claim that a pod uses, the requests of it; none where it uses all."""
    found: dict[str, frozenset[str]] = {}
    for each in pod.spec.resource_claims:
        if each.resource_claim_name:
            uses = [use for container in pod.spec.containers for use in container.resources.claims]
            requests = frozenset(use.request for use in uses if use.name == each.name)
            found[each.resource_claim_name] = frozenset() if "" in requests else requests
    return found


def claims_of(pod: Pod) -> tuple[str, ...]:
    """The names of the claims that a pod uses."""
    return tuple(each.resource_claim_name for each in pod.spec.resource_claims if each.resource_claim_name)


def _held(claim: ResourceClaim) -> tuple[Named, ...]:
    allocated = claim.status.allocation
    if allocated is None:
        return ()
    return tuple(
        Named(each.driver, each.pool, each.device) for each in allocated.devices.results if not each.admin_access
    )
