"""Local volumes: folders of hosts that Kubernetes gives to claims, one claim each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import yaml

from corral.deploy.checks.facts import Facts
from corral.deploy.checks.ours import MARK
from corral.deploy.hosts.reader import Host, Hosts
from corral.deploy.steps import files
from corral.deploy.steps.step import Step

STORAGE_CLASS: Final = "corral-local"
UNFINISHED_FOLDERS, UNFINISHED_VOLUMES = "volume-folders", "volumes"
"""What a host keeps a mark of while it is begun and not done."""
WriteFile = Callable[[str, str, str], Step]
"""The step that writes a file with a text, and leaves a mark of what is then to be done."""


def folder_steps(hosts: Hosts, host: Host, own: Facts) -> Iterator[Step]:
    """The folders on their host. A reset removes those that are empty, as data of people may be in them."""
    folders = [each.folder for each in hosts.volumes.values() if each.host == host.name]
    if not folders:
        return
    text = MARK + "".join(f"{folder}\n" for folder in folders)
    listed = files.file_step(own, files.VOLUME_FOLDERS_FILE, text, done=True, unfinished=UNFINISHED_FOLDERS)
    yield listed
    needed = listed.needed or UNFINISHED_FOLDERS in own.unfinished
    what = "the folders of local volumes"
    yield Step(
        "file", f"make {what}" if needed else f"{what} are there", needed, tuple(folders),
        ("make_volumes", files.VOLUME_FOLDERS_FILE),
    )  # fmt: skip


def object_steps(hosts: Hosts, own: Facts, write: WriteFile, *, able: bool) -> Iterator[Step]:
    """The volumes in Kubernetes, by the first control plane."""
    if not hosts.volumes:
        return
    objects = write(files.VOLUMES_FILE, objects_text(hosts), UNFINISHED_VOLUMES)
    yield objects
    needed = objects.needed or UNFINISHED_VOLUMES in own.unfinished
    count = f"{len(hosts.volumes)} local volume{'s' if len(hosts.volumes) > 1 else ''}"
    yield Step(
        "chart", f"apply {count}" if needed else f"Kubernetes has {count}", needed, tuple(hosts.volumes),
        ("apply_volumes", files.VOLUMES_FILE) if able else (),
    )  # fmt: skip


def objects_text(hosts: Hosts) -> str:
    """Their class, and each volume with the node that has it."""
    kind = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": STORAGE_CLASS},
        "provisioner": "kubernetes.io/no-provisioner",
        # A claim waits for its pod, so that the volume is one of a node where the pod fits.
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    volumes = [_volume(name, each.host, each.folder, each.size) for name, each in hosts.volumes.items()]
    return MARK + yaml.safe_dump_all([kind, *volumes], sort_keys=False)


def _volume(name: str, host: str, folder: str, size: str) -> dict[str, Any]:
    there = {"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": STORAGE_CLASS,
            "local": {"path": folder},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [there]}]}},
        },
    }
