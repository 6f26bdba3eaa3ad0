"""The plan, manifest, allocation and status of Corral's ResourceClaims.

The plan is stored in the claim, so the next server recovers it from there. A claim is written in two steps, as the API
server requires. First come its requests and plan (an annotation). Once its pods have UIDs, allocation and reservation
follow in one write. Source: Kubernetes `resource.k8s.io/v1` ResourceClaim, with its limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from corral.engines.kubernetes.devices.resource_slices import Named
from corral.engines.kubernetes.devices.structs import ResourceClaim
from corral.engines.kubernetes.pods.manifest import JOB_LABEL, SERVER_LABEL, pod_name
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import AttemptId, parse_attempt_id

PLAN: Final = "corral.dev/plan"
"""The annotation with the `Plan` of a claim."""
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""The claim's finalizer. Without it kube-controller-manager would write the claim again and again."""
MOST: Final = 32
"""Requests, and devices, of one claim at most."""


class Grant(msgspec.Struct, frozen=True):
    """One request of a claim and its devices, all of one driver."""

    request: str
    devices: tuple[Named, ...]


class Plan(msgspec.Struct, frozen=True):
    """The devices of one node that a claim is for."""

    node: str
    grants: tuple[Grant, ...] = ()

    def request_of(self, device: Named) -> str:
        """Return the request that holds only this device, "" if there is none."""
        return next((grant.request for grant in self.grants if grant.devices == (device,)), "")

    @property
    def devices(self) -> frozenset[Named]:
        """All devices of the claim."""
        return frozenset(device for grant in self.grants for device in grant.devices)


_PLAN: Final = msgspec.json.Decoder(Plan)


def grants_for(sets: Iterable[Sequence[Named]]) -> tuple[tuple[Grant, ...], ...]:
    """Return the grants of each set of devices, one per driver. Requests are numbered across all sets.

    Raises InvalidInput for more devices than a claim can have.
    """
    out: list[tuple[Grant, ...]] = []
    number = 0
    for devices in sets:
        by_driver: dict[str, list[Named]] = {}
        for device in devices:
            by_driver.setdefault(device.driver, []).append(device)
        grants = tuple(Grant(f"r{number + at}", tuple(found)) for at, found in enumerate(by_driver.values()))
        number += len(grants)
        out.append(grants)
    if max(number, sum(len(grant.devices) for grants in out for grant in grants)) > MOST:
        message = f"A task can have {MOST} devices by claims, no more: Kubernetes takes no larger claim."
        raise InvalidInput("claim-too-large", message)
    return tuple(out)


def plan_of(claim: ResourceClaim) -> Plan | None:
    """Return the claim's plan, or None if it is missing or unreadable."""
    try:
        return _PLAN.decode(claim.metadata.annotations.get(PLAN, ""))
    except msgspec.DecodeError:
        return None


def claim_manifest(attempt: AttemptId, server: str, plan: Plan) -> dict[str, Any]:
    """Return the manifest of a claim made for an attempt, possibly shared by others. It has no allocation yet."""
    requests = [
        {
            "name": grant.request,
            "exactly": {
                "deviceClassName": grant.devices[0].driver,
                "allocationMode": "ExactCount",
                "count": len(grant.devices),
            },
        }
        for grant in plan.grants
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": pod_name(attempt),
            "labels": {SERVER_LABEL: server, JOB_LABEL: parse_attempt_id(attempt).job},
            "annotations": {PLAN: msgspec.json.encode(plan).decode()},
            "finalizers": [FINALIZER],
        },
        "spec": {"devices": {"requests": requests}},
    }


def allocation(plan: Plan) -> dict[str, Any]:
    """Return the plan's devices as a claim's allocation."""
    results = [
        {"request": grant.request, "driver": each.driver, "pool": each.pool, "device": each.device}
        for grant in plan.grants
        for each in grant.devices
    ]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [plan.node]}]}
    return {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [term]}}


def as_planned(claim: ResourceClaim, plan: Plan) -> bool:
    """Return whether the claim's allocation matches its plan."""
    if claim.status.allocation is None:
        return False
    found = {(each.request, each.driver, each.pool, each.device) for each in claim.status.allocation.devices.results}
    return found == {
        (grant.request, each.driver, each.pool, each.device) for grant in plan.grants for each in grant.devices
    }


def status_patch(uid: str, plan: Plan, users: Mapping[str, str], *, allocate: bool) -> dict[str, Any]:
    """Return the status patch that reserves a claim (its UID) for pods (name by UID).

    `allocate` adds the allocation.
    """
    reserved = [{"resource": "pods", "name": name, "uid": pod} for pod, name in users.items()]
    status: dict[str, Any] = {"reservedFor": reserved}
    if allocate:
        status["allocation"] = allocation(plan)
    return {"metadata": {"uid": uid}, "status": status}
