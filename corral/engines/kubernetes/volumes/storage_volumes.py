"""Turn Storage documents into volumes of a pod.

Administrators write these documents, so the rules for podTemplates do not apply to them. Data at URIs are copied by the
sidecar into a folder shared with the task's container.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from corral.kernel.errors import InvalidInput
from corral.model.storages import Mount

SMB_DRIVER: Final = "microsoft.com/smb"
BLOB_DRIVER: Final = "azure/blobfuse"
"""The flexVolume drivers of SMB and Azure file shares."""


def storage_volumes(mounts: Sequence[Mount]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the pod's volumes for these storages, and the task's mounts of them.

    Raises InvalidInput for a storage that no pod volume can represent.
    """
    volumes: list[dict[str, Any]] = []
    inside: list[dict[str, Any]] = []
    for at, mount in enumerate(mounts):
        name = f"storage-{at}"
        volumes.append({"name": name, **_source(mount)})
        inside.append(
            {"name": name, "mountPath": mount.path}
            | ({"subPath": mount.folder} if mount.folder and not mount.is_moved else {})
            | ({"readOnly": True} if mount.read_only and not mount.is_moved else {})
        )
    return volumes, inside


def moved(mounts: Sequence[Mount]) -> list[tuple[str, Mount]]:
    """Return the storages whose data are copied, with the names of their volumes."""
    return [(f"storage-{at}", mount) for at, mount in enumerate(mounts) if mount.is_moved]


def _source(mount: Mount) -> dict[str, Any]:
    only = {"readOnly": True} if mount.read_only else {}
    if mount.host_path:
        return {"hostPath": {"path": mount.host_path, "type": "Directory"}}
    match mount.type:
        case "uri":
            return {"emptyDir": {}}
        case "pvc":
            return {"persistentVolumeClaim": {"claimName": mount.source, **only}}
        case "folder":
            return {"hostPath": {"path": mount.source, "type": "Directory"}}
        case "nfs":
            if mount.options:
                message = (
                    f"The storage {mount.name} has mount options, which a pod's NFS volume cannot have; make a volume and "
                    "a claim with them, and declare the storage as type pvc."
                )
                raise InvalidInput("storage-not-mountable", message)
            return {"nfs": {"server": mount.server, "path": mount.source, **only}}
        case "azureFile":
            return {"azureFile": {"shareName": mount.source, "secretName": _secret(mount), **only}}
        case "samba":
            return {"flexVolume": _flexible(mount, SMB_DRIVER, {"source": mount.source}) | only}
        case "azureBlob":
            return {"flexVolume": _flexible(mount, BLOB_DRIVER, {"container": mount.source}) | only}
    volume: dict[str, Any] = {"driver": mount.source, **only}
    if mount.attributes:
        volume["volumeAttributes"] = dict(mount.attributes)
    if mount.secret:
        volume["nodePublishSecretRef"] = {"name": mount.secret}
    return {"csi": volume}


def _flexible(mount: Mount, driver: str, options: dict[str, str]) -> dict[str, Any]:
    if mount.options:
        options["mountoptions"] = ",".join(mount.options)
    return {"driver": driver, "options": options} | ({"secretRef": {"name": mount.secret}} if mount.secret else {})


def _secret(mount: Mount) -> str:
    if not mount.secret:
        message = f"The storage {mount.name} names no Secret with the credentials of its account; set secretName."
        raise InvalidInput("storage-not-mountable", message)
    return mount.secret
