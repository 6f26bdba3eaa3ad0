"""Track which claim holds each device and which claims are no longer used, from claims and pods as last seen.

Corral's claims outlive single tasks, since tasks of one node may share one. The device of an ended task stays in the
claim, and the next task on that device uses the same claim. A claim is unused once no pod that uses it is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from corral.engines.kubernetes.devices.claim_manifest import Plan, as_planned, plan_of
from corral.engines.kubernetes.devices.resource_slices import ClaimDevice
from corral.engines.kubernetes.devices.structs import ResourceClaim
from corral.engines.kubernetes.pods.manifest import SERVER_LABEL
from corral.engines.kubernetes.watch.foreign_pods import TERMINAL
from corral.engines.kubernetes.watch.object_copy import Change
from corral.engines.kubernetes.watch.pod_structs import Pod

UNUSED_SECONDS: Final = 30.0
"""Seconds after which a claim that no pod ever used is deleted: its server was killed, or its pods were refused."""
_FIRST_PAUSE: Final = 0.25
_LONGEST_PAUSE: Final = 30.0
_UNSEEN_SECONDS: Final = 10.0
"""Seconds for which a pod may be missing from the followed pods before the cluster is asked for it."""


@dataclass(slots=True)
class User:
    """One pod that uses a claim."""

    name: str
    since: float
    requests: frozenset[str]
    """The claim's requests that the pod uses; empty means all of them."""
    live: bool = True
    """Whether it may still use its devices."""


@dataclass(slots=True)
class OwnClaim:
    """One claim of this server."""

    name: str
    plan: Plan
    since: float
    """When it was first known here, by the loop's clock."""
    claim: ResourceClaim | None = None
    """The claim as last seen; None before that."""
    users: dict[str, User] = field(default_factory=dict)
    """Pods by UID."""
    used: bool = False
    """Whether a pod ever used it."""
    busy: int = 0
    """The number of starts that are writing it or its pods."""
    reported: bool = False
    """Whether a change to it by others was already reported."""
    leaving: bool = False
    """Whether this server requested its deletion."""
    not_before: float = 0.0
    """When to retry a refused write, by the loop's clock."""
    pause: float = 0.0

    def refused(self, now: float) -> None:
        """Delay the next write after a failure, with exponential backoff."""
        self.pause = min(max(_FIRST_PAUSE, 2 * self.pause), _LONGEST_PAUSE)
        self.not_before = now + self.pause

    @property
    def live(self) -> dict[str, str]:
        """The names of the pods that may use their devices, by UID."""
        return {uid: user.name for uid, user in self.users.items() if user.live}

    def user_of(self, request: str, *, other_than: str) -> str:
        """Return another pod that may use the devices of a request, "" for none."""
        mine = (user for user in self.users.values() if user.live and (not user.requests or request in user.requests))
        return next((user.name for user in mine if user.name != other_than), "")

    @property
    def unsettled(self) -> bool:
        """Whether its allocation is missing, or a live pod is not in its `reservedFor`."""
        if self.claim is None or self.busy or not self.live:
            return False
        reserved = {each.uid for each in self.claim.status.reserved_for}
        return self.claim.status.allocation is None or not self.live.keys() <= reserved

    @property
    def wrongly_allocated(self) -> bool:
        """Whether somebody else allocated other devices to it. An allocation never changes."""
        return self.claim is not None and bool(self.claim.status.allocation) and not as_planned(self.claim, self.plan)


class ClaimBook:
    """All claims of the cluster, and the pods of this server that use claims."""

    def __init__(self, server: str, namespace: str) -> None:
        self._server, self._namespace = server, namespace
        self.own_claims: dict[str, OwnClaim] = {}
        """Claims by name."""
        self.touched: set[str] = set()
        """Names of changed claims. The reader clears it."""
        self._unused: set[str] = set()
        self._others: dict[str, tuple[ClaimDevice, ...]] = {}
        self._held: dict[ClaimDevice, dict[str, str]] = {}
        self._claim_names: dict[ClaimDevice, str] = {}

    def holder(self, device: ClaimDevice) -> str:
        """Return the claim (`namespace/name`) by which others hold a device, "" for none."""
        return next(iter(self._held.get(device, {}).values()), "")

    def claim_of(self, device: ClaimDevice) -> OwnClaim | None:
        """Return this server's claim that holds a device and has live pods or running starts, or None."""
        found = self.own_claims.get(self._claim_names.get(device, ""))
        return found if found is not None and (found.live or found.busy) else None

    def expect(self, name: str, plan: Plan, now: float) -> OwnClaim:
        """Record a claim that is about to be created."""
        found = self.own_claims.setdefault(name, OwnClaim(name, plan, now))
        found.plan = plan
        self._unused.add(name)
        self._give(found)
        return found

    def use(self, pod: Pod, now: float) -> None:
        """Record that a pod was just created and uses its claims."""
        for name, requests in uses_of(pod).items():
            found = self.own_claims.get(name)
            if found is not None:
                found.used = True
                found.users.setdefault(pod.metadata.uid, User(pod.metadata.name, now, requests))
                self._unused.discard(name)

    def fold_claim(self, change: Change[ResourceClaim], now: float) -> set[ClaimDevice]:
        """Fold a claim's change. Return the devices of others' claims that became held or free."""
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
        """Fold the change of a pod of this server."""
        pod = change.object
        for name, requests in uses_of(pod).items():
            found = self.own_claims.get(name)
            if found is None:
                found = self.own_claims[name] = OwnClaim(name, Plan(pod.spec.node_name), now)
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

    def missing(self, there: frozenset[str], now: float) -> dict[str, str]:
        """The names of pods, by UID, that are not among the followed ones (`there`) for too long.

        They ended unseen, or a busy cluster has not told of them yet.
        """
        users = (each for found in self.own_claims.values() for each in found.users.items())
        return {uid: user.name for uid, user in users if uid not in there and now - user.since > _UNSEEN_SECONDS}

    def still_there(self, pod: str, now: float) -> None:
        """Record that a pod exists, by its UID, although it is not followed yet."""
        for found in self.own_claims.values():
            if pod in found.users:
                found.users[pod].since = now

    def forget(self, pod: str) -> None:
        """Forget a pod that ended unseen, by its UID."""
        for name, found in self.own_claims.items():
            if found.users.pop(pod, None) is not None:
                self._unused.add(name)
                self.touched.add(name)

    def unused_claims(self, now: float) -> Iterator[OwnClaim]:
        """Yield the claims to delete."""
        for found in [self.own_claims[name] for name in self._unused]:
            if found.claim is None or found.busy or found.users or found.leaving or now < found.not_before:
                continue
            if found.used or now - found.since >= UNUSED_SECONDS:
                yield found

    def drop_if_gone(self, found: OwnClaim) -> None:
        """Forget a claim that does not exist and has no users."""
        if found.claim is not None or found.users or found.busy:
            return
        del self.own_claims[found.name]
        self._unused.discard(found.name)
        for device in found.plan.devices:
            if self._claim_names.get(device) == found.name:
                del self._claim_names[device]

    def _fold_ours(self, claim: ResourceClaim, now: float, *, gone: bool) -> None:
        name = claim.metadata.name
        found = self.own_claims.get(name)
        if found is None:
            if gone:
                return
            found = self.own_claims[name] = OwnClaim(name, plan_of(claim) or Plan(""), now)
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

    def _give(self, found: OwnClaim) -> None:
        for device in found.plan.devices:
            if self.claim_of(device) is None:
                self._claim_names[device] = found.name


def uses_of(pod: Pod) -> dict[str, frozenset[str]]:
    """Return, per claim of a pod, the requests that it uses; empty if it uses all."""
    found: dict[str, frozenset[str]] = {}
    for each in pod.spec.resource_claims:
        if each.resource_claim_name:
            uses = [use for container in pod.spec.containers for use in container.resources.claims]
            requests = frozenset(use.request for use in uses if use.name == each.name)
            found[each.resource_claim_name] = frozenset() if "" in requests else requests
    return found


def claims_of(pod: Pod) -> tuple[str, ...]:
    """Return the names of the claims that a pod uses."""
    return tuple(each.resource_claim_name for each in pod.spec.resource_claims if each.resource_claim_name)


def _held(claim: ResourceClaim) -> tuple[ClaimDevice, ...]:
    allocated = claim.status.allocation
    if allocated is None:
        return ()
    return tuple(
        ClaimDevice(each.driver, each.pool, each.device) for each in allocated.devices.results if not each.admin_access
    )
