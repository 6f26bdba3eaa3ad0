"""A task goes where its volumes are reachable; a claim without a volume gets its node before the pod is created."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from corral.engines.kubernetes.volumes.reachability import RESERVED, SELECTED_NODE, Volume, Volumes, claims_of
from corral.kernel.errors import Forbidden
from corral.model.inventory import ELSEWHERE
from corral.model.launch import Exited, RuntimePlan
from corral.model.request_builder import gang_terms
from corral.spec.job import UnifiedJob
from tests.engines.kubernetes.engine_harness import Harness, launch, until
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.kwok import Kwok

ZONE = "topology.kubernetes.io/zone"


def volume(claim: str, *terms: dict[str, Any], namespace: str = "n", name: str = "pv") -> Volume:
    spec: dict[str, Any] = {"claimRef": {"namespace": namespace, "name": claim}}
    if terms:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": list(terms)}}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, Volume)


def needs(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("terms", "reached"),
    [
        ([], True),
        ([needs(ZONE, "In", "a", "b")], True),
        ([needs(ZONE, "In", "b")], False),
        ([needs(ZONE, "In", "b"), needs("disk", "Exists")], True),
        ([needs(ZONE, "NotIn", "a")], False),
        ([needs("gone", "DoesNotExist")], True),
        ([needs("size", "Gt", "10")], True),
        ([needs("size", "Lt", "10")], False),
        ([needs(ZONE, "Gt", "10")], False),
        ([needs("size", "Gt", "--1")], False),
        ([needs("size", "Lt", "\N{SUPERSCRIPT TWO}")], False),
        ([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}], True),
        ([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-2"]}]}], False),
        (
            [needs(ZONE, "In", "a") | {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["x"]}]}],
            False,
        ),
        ([{}], False),
    ],
)
def test_a_node_reaches_a_volume_as_its_node_affinity_says(terms: list[dict[str, Any]], reached: bool) -> None:
    volumes = Volumes("n")
    volumes.put(volume("data", *terms))
    labels = volumes.out_of_reach({ZONE: "a", "disk": "", "size": "11"}, "node-1")
    assert labels == ({} if reached else {f"{ELSEWHERE}data": "elsewhere"})


def test_only_volumes_of_the_namespace_that_are_somewhere_count_until_they_are_gone() -> None:
    volumes, here = Volumes("n"), needs(ZONE, "In", "b")
    assert not volumes.put(volume("data")) and not volumes.put(volume("data", here, namespace="other"))
    assert volumes.put(volume("data", here)) and not volumes.put(volume("data", here))
    assert volumes.out_of_reach({}, "node-1")
    assert volumes.drop(volume("data", here)) and not volumes.out_of_reach({}, "node-1")


def test_a_job_keeps_off_nodes_that_cannot_reach_what_it_mounts() -> None:
    template = {"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "e"}]}}
    role = {"name": "w", "command": ["x"], "kubernetes": {"podTemplate": template}}
    spec = {"jobType": "shell", "inputs": [{"uri": "pvc://sets/a", "path": "a"}], "roles": [role]}
    document = {"apiVersion": "corral.dev/v1alpha1", "kind": "UnifiedJob", "metadata": {"name": "j"}, "spec": spec}
    rules = gang_terms(UnifiedJob.model_validate(document)).roles[0].nodes
    assert rules is not None
    assert [(each.key, each.operator) for each in rules.expressions] == [
        (f"{ELSEWHERE}data", "DoesNotExist"),
        (f"{ELSEWHERE}sets", "DoesNotExist"),
    ]
    assert claims_of(template) == ["data"]


@pytest.fixture(scope="module")
def nodes(kwok: Kwok, control_plane: ControlPlane) -> Iterator[list[str]]:
    made = kwok.add_nodes(2, prefix="disks", levels={ZONE: 1})
    yield made
    for name in made:
        control_plane.request("DELETE", f"/api/v1/nodes/{name}")


def claim(name: str, **spec: Any) -> dict[str, Any]:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
    return {"metadata": {"name": name}, "spec": wanted | spec}


def mounting(name: str) -> dict[str, Any]:
    return {"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]}}


@pytest.mark.kubernetes
async def test_volumes_on_a_cluster(
    control_plane: ControlPlane, namespace: str, nodes: list[str], tmp_path: Path
) -> None:
    """One scenario: a zone's volume, a claim without one, a claim that is bound on another node, and one that never is."""
    at, claims = Harness(control_plane, namespace, tmp_path), f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    name = f"disk-of-{namespace}"
    disk = {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/nowhere"},
            "claimRef": {"namespace": namespace, "name": "zonal"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [needs(ZONE, "In", "zone-1")]}},
        },
    }
    async with at:
        await at.ask("POST", "/api/v1/persistentvolumes", disk)
        await at.ask("POST", claims, claim("zonal", volumeName=name))

        async def told() -> bool:
            found = {node.name: node.labels.get(f"{ELSEWHERE}zonal") for node in (await at.engine.inventory()).nodes}
            return [found[f"kubernetes/{node}"] for node in nodes] == ["elsewhere", None]

        await until(told)

        await at.ask("POST", claims, claim("fresh", storageClassName="none"))
        task = launch(nodes[1], pod_template=mounting("fresh"))
        await at.engine.start(task)
        assert (await at.pod(task.attempt)) is not None
        assert (await at.ask("GET", f"{claims}/fresh"))["metadata"]["annotations"][SELECTED_NODE] == nodes[1]

        elsewhere = await at.run(launch(nodes[0], pod_template=mounting("fresh")))
        assert (elsewhere.code, elsewhere.reason) == (251, f"claim fresh is just getting its volume on node {nodes[1]}")

        missing: Exited = await at.run(launch(nodes[0], pod_template=mounting("none")))
        assert missing.code == 251 and "persistentvolumeclaims none" in missing.reason
    await at.ask("DELETE", f"/api/v1/persistentvolumes/{name}")


@pytest.mark.kubernetes
async def test_no_job_mounts_a_reserved_claim_by_whichever_way_it_names_it(
    control_plane: ControlPlane, namespace: str, nodes: list[str], tmp_path: Path
) -> None:
    places = ("pvc://*", "pvc://blobs")
    at = Harness(control_plane, namespace, tmp_path, runtime_image="corral:test", storage_places=places)
    reserved = claim("blobs")
    reserved["metadata"]["labels"] = {RESERVED: "true"}
    async with at:
        await at.ask("POST", f"/api/v1/namespaces/{namespace}/persistentvolumeclaims", reserved)
        for task in (
            launch(nodes[0], pod_template=mounting("blobs")),
            launch(nodes[0], runtime=RuntimePlan(inputs=(("pvc://blobs/logs", "data"),))),
            launch(nodes[0], runtime=RuntimePlan(outputs=(("model", "pvc://blobs/x"),))),
        ):
            with pytest.raises(Forbidden, match="No job may mount the volume claim blobs: it is reserved"):
                await at.engine.start(task)
        assert not await at.pods()
        found = await at.ask("GET", f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/blobs")
        assert SELECTED_NODE not in found["metadata"].get("annotations", {})
