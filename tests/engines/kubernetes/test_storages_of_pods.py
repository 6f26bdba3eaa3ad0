"""Storages become volumes of pods, each of the fitting Kubernetes kind."""

from __future__ import annotations

from typing import Any

import pytest

from corral.engines.kubernetes.pods.manifest import pod_manifest
from corral.engines.kubernetes.pods.manifest_inputs import PodParts, PodSettings
from corral.engines.kubernetes.pods.runtime import needs_runtime
from corral.engines.kubernetes.pods.sidecar import Beside
from corral.engines.kubernetes.volumes.reachability import claims_of
from corral.engines.kubernetes.volumes.storage_volumes import storage_volumes
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import AttemptId
from corral.model.launch import RuntimePlan, TaskLaunch
from corral.model.storages import Mount, mount_of
from corral.spec.storage import StorageDocument, StorageUse

ATTEMPT = AttemptId("0mabcdefgh123.0.worker.3.1")
SETTINGS = PodSettings(server="server-uid", namespace="x", default_image="base:1")


def mount(at: str = "", **document: Any) -> Mount:
    storage = StorageDocument.model_validate({"name": "data", **document})
    return mount_of(storage, StorageUse(name="data", mount_path=at), "ada")


def pod(*mounts: Mount) -> dict[str, Any]:
    launch = TaskLaunch(
        attempt=ATTEMPT, user="ada", node="kubernetes/n1", command=("true",), env={}, storages=mounts
    )  # fmt: skip
    return pod_manifest(launch, SETTINGS, PodParts(node="n1"))


@pytest.mark.parametrize(
    ("document", "volume"),
    [
        ({"type": "nfs", "server": "filer", "path": "/export"}, {"nfs": {"server": "filer", "path": "/export"}}),
        (
            {"type": "nfs", "server": "filer", "path": "/export", "readOnly": True},
            {"nfs": {"server": "filer", "path": "/export", "readOnly": True}},
        ),
        ({"type": "pvc"}, {"persistentVolumeClaim": {"claimName": "data"}}),
        ({"type": "pvc", "claim": "other"}, {"persistentVolumeClaim": {"claimName": "other"}}),
        ({"type": "folder", "path": "/srv"}, {"hostPath": {"path": "/srv", "type": "Directory"}}),
        (
            {"type": "samba", "hostPath": "/mnt/smb"},
            {"hostPath": {"path": "/mnt/smb", "type": "Directory"}},
        ),
        (
            {"type": "samba", "address": "//srv/s", "secretName": "key", "mountOptions": ["vers=3.0", "uid=5"]},
            {
                "flexVolume": {
                    "driver": "microsoft.com/smb",
                    "options": {"source": "//srv/s", "mountoptions": "vers=3.0,uid=5"},
                    "secretRef": {"name": "key"},
                }
            },
        ),
        (
            {"type": "azureFile", "shareName": "s", "secretName": "key"},
            {"azureFile": {"shareName": "s", "secretName": "key"}},
        ),
        (
            {"type": "azureBlob", "containerName": "c", "secretName": "key"},
            {
                "flexVolume": {
                    "driver": "azure/blobfuse",
                    "options": {"container": "c"},
                    "secretRef": {"name": "key"},
                }
            },
        ),
        (
            {"type": "dshuttle", "attributes": {"path": "/x"}},
            {"csi": {"driver": "dshuttle", "volumeAttributes": {"path": "/x"}}},
        ),
        (
            {"type": "other", "driver": "csi.example.org", "secretName": "key"},
            {"csi": {"driver": "csi.example.org", "nodePublishSecretRef": {"name": "key"}}},
        ),
    ],
)
def test_each_type_is_a_volume_of_its_kind(document: dict[str, Any], volume: dict[str, Any]) -> None:
    made = pod(mount(**document))
    assert made["spec"]["volumes"] == [{"name": "storage-0", **volume}]
    inside = made["spec"]["containers"][0]["volumeMounts"]
    read_only = {"readOnly": True} if document.get("readOnly") else {}
    assert inside == [{"name": "storage-0", "mountPath": "/mnt/data", **read_only}]


def test_a_storage_that_is_not_shared_is_mounted_at_the_users_own_folder_of_it() -> None:
    made = pod(mount("/home/ada", type="pvc", share=False), mount(type="folder", path="/srv"))
    inside = made["spec"]["containers"][0]["volumeMounts"]
    assert inside[0] == {"name": "storage-0", "mountPath": "/home/ada", "subPath": "ada"}
    assert inside[1] == {"name": "storage-1", "mountPath": "/mnt/data"}
    assert claims_of(made) == ["data"]


def test_data_at_a_uri_are_copied_by_the_container_beside() -> None:
    moved = mount(type="uri", uri="s3://bucket/data", share=False)
    launch = TaskLaunch(
        attempt=ATTEMPT,
        user="ada",
        node="kubernetes/n1",
        command=("true",),
        env={},
        storages=(moved,),
        runtime=RuntimePlan(),
    )
    assert needs_runtime(launch)
    made = pod_manifest(launch, SETTINGS, PodParts(node="n1"))
    beside = Beside(launch, "corral:1", ())
    beside.wrap(made, given="given", runtime="runtime", work="/run/corral/work")
    plan = beside.plan({"checkpoint": "", "work": "/run/corral/work"}, {})
    assert plan["storages"] == [("s3://bucket/data/ada", "/mnt/data", False)]
    place = {"name": "storage-0", "mountPath": "/mnt/data"}
    assert {"name": "storage-0", "emptyDir": {}} in made["spec"]["volumes"]
    assert place in made["spec"]["containers"][0]["volumeMounts"]
    assert place in made["spec"]["initContainers"][0]["volumeMounts"]
    assert made["metadata"]["labels"]["corral.dev/outputs"] == "true"


def test_what_no_pod_can_mount_is_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidInput, match="declare the storage as type pvc"):
        storage_volumes([mount(type="nfs", server="filer", path="/x", mountOptions=["vers=4.1"])])
    with pytest.raises(InvalidInput, match="set secretName"):
        storage_volumes([mount(type="azureFile", shareName="s")])
