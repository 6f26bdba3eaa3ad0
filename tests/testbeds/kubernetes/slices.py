"""Publish ResourceSlices in place of device drivers, which kwok does not simulate."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Iterable, Mapping
from typing import Any, Final

from tests.testbeds.kubernetes.controlplane import ControlPlane

DRIVER: Final = "gpu.example.com"
MANAGED: Final = "corral.dev/managed"
TAINT: Final = {"key": MANAGED, "value": "true", "effect": "NoSchedule"}
"""Keeps other pods from nodes that are Corral's alone; kwok's pods tolerate it as Corral's do."""
PATH: Final = "/apis/resource.k8s.io/v1/resourceslices"


def managed(index: int) -> dict[str, Any]:
    """Labels for `Kwok.add_nodes` that make nodes Corral's alone."""
    return {"labels": {MANAGED: "true"}}


def device(number: int, per_root: int = 4, **attributes: Any) -> dict[str, Any]:
    """A device as a driver would publish it, with its PCIe root."""
    kinds = {bool: "bool", int: "int", str: "string"}
    told = {
        "index": number,
        "model": "a2",
        "kind": "gpu",
        "resource.kubernetes.io/pcieRoot": f"pci{number // per_root}",
    }
    told |= attributes
    return {"name": f"gpu-{number}", "attributes": {key: {kinds[type(value)]: value} for key, value in told.items()}}


def publish(
    plane: ControlPlane, nodes: Iterable[str], devices: Iterable[Mapping[str, Any]], *, generation: int = 1
) -> None:
    """Publish one slice with these devices for each node."""
    listed = list(devices)

    def put(node: str) -> None:
        pool = {"name": node, "generation": generation, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": listed}
        body: dict[str, Any] = {"metadata": {"name": f"{node}-{DRIVER}"}, "spec": spec}
        if generation == 1:
            plane.request("POST", PATH, body)
            return
        found = plane.request("GET", f"{PATH}/{node}-{DRIVER}")
        body["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
        plane.request("PUT", f"{PATH}/{node}-{DRIVER}", body)

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        list(threads.map(put, nodes))


def withdraw(plane: ControlPlane, nodes: Iterable[str]) -> None:
    """Delete the slices of `publish`."""
    for node in nodes:
        plane.request("DELETE", f"{PATH}/{node}-{DRIVER}")
