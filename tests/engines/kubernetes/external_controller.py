"""A minimal external controller of `jobType: external` objects: one pod for each replica that it may have.

It follows `spec.replicaSpec.targetReplicas` as Corral writes it, and reports in `status.external`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.testbeds.kubernetes import images
from tests.testbeds.kubernetes.controlplane import ControlPlane

MERGE = "application/merge-patch+json"


def control(plane: ControlPlane, namespace: str, name: str) -> dict[str, int]:
    """Reconcile one object once; returns its replicas by node."""
    path = f"/apis/corral.dev/v1alpha1/namespaces/{namespace}/unifiedjobs/{name}"
    pods, job = f"/api/v1/namespaces/{namespace}/pods", plane.request("GET", path)
    targets, attempt = job["spec"]["replicaSpec"].get("targetReplicas", {}), job["status"].get("attempt", 0)
    mine = plane.request("GET", f"{pods}?labelSelector=external%3D{name}")["items"]
    wanted = {f"{name}-{node.split('/')[1]}-{index}": node for node, count in targets.items() for index in range(count)}
    for pod in mine:
        if pod["metadata"]["name"] not in wanted and "deletionTimestamp" not in pod["metadata"]:
            plane.request("DELETE", f"{pods}/{pod['metadata']['name']}")
    for each in wanted.keys() - {pod["metadata"]["name"] for pod in mine}:
        plane.request("POST", pods, _pod(each, name, wanted[each], job["metadata"]["uid"]))
    there = plane.request("GET", f"{pods}?labelSelector=external%3D{name}")["items"]
    held = Counter(dict.fromkeys(job["status"].get("external", {}).get("replicas", {}), 0))  # a merge keeps keys
    held.update(f"kubernetes/{pod['spec']['nodeName']}" for pod in there)
    over = bool(there) and all(pod["status"].get("phase") == "Succeeded" for pod in there)
    word = {"observedGeneration": job["metadata"]["generation"], "attempt": attempt, "replicas": held}
    external = {**word, "outcome": "succeeded" if over else ""}
    plane.request("PATCH", f"{path}/status", {"status": {"external": external}}, content=MERGE)
    return dict(held)


def _pod(pod: str, job: str, node: str, uid: str) -> dict[str, Any]:
    owner = {"apiVersion": "corral.dev/v1alpha1", "kind": "UnifiedJob", "name": job, "uid": uid}
    device = {"limits": {"nvidia.com/gpu": "1"}}
    task = {"name": "task", "image": images.BUSYBOX, "command": ["train"], "resources": device}
    metadata = {"name": pod, "labels": {"external": job}, "ownerReferences": [owner]}
    return {"metadata": metadata, "spec": {"nodeName": node.split("/")[1], "containers": [task]}}
