"""Why: what a claim of Corral's gives to whom follows from the claim alone, so a killed server finds it all again.

A claim is written in two steps, as the API server takes it: first what it is for (this module's annotation, in requests
of the shape that Kubernetes wants), later, when the pods that use it have UIDs, its allocation and whom it is reserved
for, in one write. Sources: Kubernetes, `resource.k8s.io/v1` ResourceClaim, its limits among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from corral.engines.kubernetes.claims import ResourceClaim
from corral.engines.kubernetes.pods import JOB_LABEL, SERVER_LABEL, pod_name
from corral.engines.kubernetes.slices import Named
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import AttemptId, parse_attempt_id

PLAN: Final = "corral.dev/plan"
"""The annotation with the `Plan` of a claim."""
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""Without it kube-controller-manager would write the claim again and again."""
MOST: Final = 32
"""Requests, and devices, of one claim."""


class Grant(msgspec.Struct, frozen=True):
    """One request of a claim and the devices that answer it, all of one driver."""

    request: str
    devices: tuple[Named, ...]


class Plan(msgspec.Struct, frozen=True):
    """What a claim is for: devices of one node."""

    node: str
    grants: tuple[Grant, ...] = ()

    def request_of(self, device: Named) -> str:
        """The request that is for this device and no other; "" where there is none."""
        return next((grant.request for grant in self.grants if grant.devices == (device,)), "")

    @property
    def devices(self) -> frozenset[Named]:
        """All devices of the claim."""
        return frozenset(device for grant in self.grants for device in grant.devices)


_PLAN: Final = msgspec.json.Decoder(Plan)


def grants_for(sets: Iterable[Sequence[Named]]) -> tuple[tuple[Grant, ...], ...]:
    """For each set of devices its grants, one a driver; requests are numbered through.

    Raises InvalidInput for more than a claim can have.
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
    """What the claim is for; None where it does not say, or nothing that can be read."""
    try:
        return _PLAN.decode(claim.metadata.annotations.get(PLAN, ""))
    except msgspec.DecodeError:
        return None


def claim_manifest(attempt: AttemptId, server: str, plan: Plan) -> dict[str, Any]:
    """The claim that is made for an attempt, and perhaps for others with it; its allocation comes later."""
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
    """What the plan's devices are as a claim's allocation."""
    results = [
        {"request": grant.request, "driver": each.driver, "pool": each.pool, "device": each.device}
        for grant in plan.grants
        for each in grant.devices
    ]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [plan.node]}]}
    return {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [term]}}


def as_planned(claim: ResourceClaim, plan: Plan) -> bool:
    """Whether the claim's allocation is what it was made for."""
    if claim.status.allocation is None:
        return False
    found = {(each.request, each.driver, each.pool, each.device) for each in claim.status.allocation.devices.results}
    return found == {
        (grant.request, each.driver, each.pool, each.device) for grant in plan.grants for each in grant.devices
    }


def status_patch(uid: str, plan: Plan, users: Mapping[str, str], *, allocate: bool) -> dict[str, Any]:
    """The one write that gives a claim of this UID its devices, and to these pods (name by UID) the right to use them."""
    reserved = [{"resource": "pods", "name": name, "uid": pod} for pod, name in users.items()]
    status: dict[str, Any] = {"reservedFor": reserved}
    if allocate:
        status["allocation"] = allocation(plan)
    return {"metadata": {"uid": uid}, "status": status}
