"""Data on NFS servers, nodes and volume claims: the volumes mounted for them, and the names that jobs may not use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.engines.kubernetes.volumes.storage_places import Reached, check_place, gathered, reach
from corral.kernel.errors import InvalidInput
from corral.model.launch import RuntimePlan
from tests.engines.kubernetes.engine_harness import Harness, launch
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.kwok import Kwok

FILER, ALL = "nfs://filer.example/exports/data", ("nfs://filer.example/exports/data", "file:///mnt/data", "pvc://*")
AT = "/run/corral/places"


@pytest.mark.parametrize(
    ("uri", "seen", "source"),
    [
        (FILER, f"file://{AT}/nfs/filer.example/exports/data", {"server": "filer.example", "path": "/exports/data"}),
        (
            f"{FILER}/digits/./a",
            f"file://{AT}/nfs/filer.example/exports/data/digits/a",
            {"server": "filer.example", "path": "/exports/data"},
        ),
        ("file:///mnt/data/x", f"file://{AT}/file/mnt/data/x", {"path": "/mnt/data", "type": "Directory"}),
        ("/mnt/data/x", f"file://{AT}/file/mnt/data/x", {"path": "/mnt/data", "type": "Directory"}),
        ("pvc://scratch/x", f"file://{AT}/pvc/scratch/x", {"claimName": "scratch"}),
    ],
)
def test_data_below_a_place_are_seen_by_mounting_the_whole_place(uri: str, seen: str, source: dict[str, Any]) -> None:
    found = reach(uri, ALL, writable=True)
    assert found.uri == seen and found.mount is not None
    assert list(found.mount.source.values()) == [source]


@pytest.mark.parametrize(
    "uri",
    [
        "nfs://filer.example/exports",
        "nfs://filer.example/exports/database",
        "nfs://filer.example/exports/data/../secrets",
        "nfs://other.example/exports/data",
        "file:///mnt/data/../../etc",
        "/etc/passwd",
    ],
)
def test_what_lies_in_no_place_is_refused_and_the_places_are_named(uri: str) -> None:
    with pytest.raises(InvalidInput, match=r"is in no place that jobs may use .*nfs://filer.example/exports/data"):
        reach(uri, ALL, writable=False)


def test_of_two_places_the_inner_one_is_mounted_and_each_once_writable_when_anything_is_written() -> None:
    inner = f"{FILER}/runs"
    found = [
        reach(f"{FILER}/digits", (FILER, inner), writable=False),
        reach(f"{inner}/1", (FILER, inner), writable=False),
        reach(f"{inner}/2", (FILER, inner), writable=True),
        Reached("s3://bucket/key", None),
    ]
    outer, inside = gathered(found)
    assert outer.source == {"nfs": {"server": "filer.example", "path": "/exports/data", "readOnly": True}}
    assert inside.source == {"nfs": {"server": "filer.example", "path": "/exports/data/runs"}}
    assert (outer.name, outer.writable, inside.name, inside.writable) == (
        "corral-place-0",
        False,
        "corral-place-1",
        True,
    )


@pytest.mark.parametrize(
    "place", ["nfs://filer", "nfs://filer/", "file://mnt", "s3://bucket", "/mnt", "file:///a/../b"]
)
def test_what_is_no_place_is_refused_at_the_start(place: str) -> None:
    with pytest.raises(InvalidInput, match="storage_places names"):
        check_place(place)


@pytest.fixture(scope="module")
def node(kwok: Kwok, control_plane: ControlPlane) -> Iterator[str]:
    (made,) = kwok.add_nodes(1, prefix="filed")
    yield made
    control_plane.request("DELETE", f"/api/v1/nodes/{made}")


@pytest.mark.kubernetes
async def test_a_pod_mounts_the_nfs_export_beside_its_task_alone(
    control_plane: ControlPlane, namespace: str, node: str, tmp_path: Path
) -> None:
    at = Harness(control_plane, namespace, tmp_path, runtime_image="corral:test", storage_places=(FILER,))
    plan = RuntimePlan(inputs=((f"{FILER}/digits", "data"),), outputs=(("model", f"{FILER}/models/1"),))
    async with at:
        task = launch(node, runtime=plan)
        await at.engine.start(task)
        pod = await at.pod(task.attempt)
        assert pod is not None
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        mounted = volumes["corral-place-0"]["nfs"]
        assert mounted == {"server": "filer.example", "path": "/exports/data"}
        (sidecar,) = [each for each in pod["spec"]["initContainers"] if each["name"] == "corral"]
        seen = {mount["name"]: mount["mountPath"] for mount in sidecar["volumeMounts"]}
        assert seen["corral-place-0"] == f"{AT}/nfs/filer.example/exports/data"
        assert "corral-place-0" not in {mount["name"] for mount in pod["spec"]["containers"][0]["volumeMounts"]}
        outside = launch(node, runtime=RuntimePlan(inputs=(("nfs://filer.example/exports", "data"),)))
        with pytest.raises(InvalidInput, match="is in no place that jobs may use"):
            await at.engine.start(outside)
        assert len(await at.pods()) == 1
