"""Build the pod manifest of a task in one pure function.

The same launch gives the same pod. A create call whose answer was lost is repeated, and on `already exists` the pod is
recognised by its labels. Secrets are referenced, never written out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from corral.engines.kubernetes.pods.manifest_inputs import ClaimedDevice, PodParts, PodSettings, Toleration
from corral.engines.kubernetes.pods.template import TASK, check_template, merged
from corral.engines.kubernetes.volumes.storage_volumes import storage_volumes
from corral.kernel.amounts import names_for
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import AttemptId, parse_attempt_id
from corral.model.launch import SecretDelivery, TaskLaunch

SERVER_LABEL: Final = "corral.dev/server"
"""The UID of the server that owns the pod."""
JOB_LABEL, ROLE_LABEL, INDEX_LABEL = "corral.dev/job", "corral.dev/role", "corral.dev/task-index"
ATTEMPT_ANNOTATION: Final = "corral.dev/attempt"
"""The whole attempt id, which is longer than a label may be."""
SECRET_FOLDER: Final = "/run/corral/secrets"
CLAIMS_FOLDER: Final = "/run/corral/claims"
"""An empty folder of every pod with claims, to delay the kubelet.

Kubelets prepare a pod's volumes for 0.1 to 0.3 s before they read its claims, which are allocated meanwhile. A claim
that is read too early is retried only after a minute.
"""
_STORAGE: Final = "ephemeral-storage"
_RESOURCES: Final = names_for("kubernetes")
_PREFIX: Final = "corral-"
_MOST_HOSTNAME: Final = 63


def pod_name(attempt: AttemptId) -> str:
    """Return the name of the attempt's pod, never reused within its server's life."""
    return f"{_PREFIX}{attempt}"


def secret_keys(launch: TaskLaunch) -> dict[str, SecretDelivery]:
    """Return the task's secrets by their keys in the job's Secret; the same for every task of a role."""
    role = parse_attempt_id(launch.attempt).role
    return {
        f"{role}.env.{secret.env}" if secret.env else f"{role}.file.{at}": secret
        for at, secret in enumerate(launch.given_secrets)
    }


def pod_manifest(launch: TaskLaunch, settings: PodSettings, parts: PodParts) -> dict[str, Any]:
    """Build the pod of one attempt.

    Raises InvalidInput for a template that sets fields reserved for Corral, and for a task without an image.
    """
    check_template(parts.template, entry=not launch.command)
    image = launch.image or settings.default_image
    if not image:
        raise InvalidInput(
            "image-missing", "The job names no image: name one, or set the Kubernetes engine's defaultImage."
        )
    key = parse_attempt_id(launch.attempt)
    volumes, mounts = _volumes(launch, parts)
    container: dict[str, Any] = {
        "name": TASK,
        "image": image,
        "command": [_literal(word) for word in launch.command],
        "env": _env(launch, parts),
        "resources": _resources(launch, settings, parts),
        "volumeMounts": mounts,
        "ports": [
            {"name": f"p{number}", "containerPort": number} | ({"hostPort": number} if parts.host_ports else {})
            for numbers in parts.ports.values()
            for number in numbers
        ],
    }
    if launch.working_dir:
        container["workingDir"] = launch.working_dir
    spec: dict[str, Any] = {
        "nodeName": parts.node,
        "restartPolicy": "Never",
        "hostname": f"{key.role}-{key.index}"[-_MOST_HOSTNAME:].lstrip("-"),
        "enableServiceLinks": False,
        "automountServiceAccountToken": bool(settings.service_account),
        "tolerations": [_said(toleration) for toleration in settings.tolerations],
        "containers": [{name: value for name, value in container.items() if value}],
        "volumes": volumes,
        "imagePullSecrets": [
            {"name": name} for name in dict.fromkeys((*launch.image_pull_secrets, *settings.image_pull_secrets))
        ],
        "serviceAccountName": settings.service_account,
    }
    labels = {
        "app.kubernetes.io/managed-by": "corral",
        SERVER_LABEL: settings.server,
        JOB_LABEL: key.job,
        ROLE_LABEL: key.role,
        INDEX_LABEL: str(key.index),
    }
    metadata: dict[str, Any] = {
        "name": pod_name(launch.attempt),
        "namespace": settings.namespace,
        "labels": labels,
        "annotations": {ATTEMPT_ANNOTATION: launch.attempt},
    }
    if parts.owner is not None:
        metadata["ownerReferences"] = [msgspec.to_builtins(parts.owner)]
    ours = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {name: value for name, value in spec.items() if value not in ("", [])},
    }
    return merged(parts.template, ours) if parts.template else ours


def add_claims(pod: dict[str, Any], claims: Sequence[ClaimedDevice]) -> None:
    """Add these claims to the pod, and their requests to its task's container."""
    spec = pod["spec"]
    (task,) = (container for container in spec["containers"] if container["name"] == TASK)
    spec["resourceClaims"] = [
        {"name": f"devices-{at}", "resourceClaimName": claim.claim} for at, claim in enumerate(claims)
    ]
    task.setdefault("resources", {})["claims"] = [
        {"name": f"devices-{at}"} | ({"request": request} if request else {})
        for at, claim in enumerate(claims)
        for request in (claim.requests or ("",))
    ]
    spec.setdefault("volumes", []).append({"name": "claims", "emptyDir": {}})
    task.setdefault("volumeMounts", []).append({"name": "claims", "mountPath": CLAIMS_FOLDER})


def _env(launch: TaskLaunch, parts: PodParts) -> list[dict[str, Any]]:
    """Return the job's variables, its secrets by reference, then Corral's own. Later ones override earlier ones."""
    env: dict[str, dict[str, Any]] = {name: {"value": _literal(value)} for name, value in launch.env.items()}
    for key, secret in secret_keys(launch).items():
        if secret.env:
            env[secret.env] = {"valueFrom": {"secretKeyRef": {"name": parts.secret, "key": key}}}
    env |= {name: {"value": _literal(value)} for name, value in parts.env.items()}
    env["CORRAL_HOST"] = {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    return [{"name": name, **value} for name, value in env.items()]


def _resources(launch: TaskLaunch, settings: PodSettings, parts: PodParts) -> dict[str, Any]:
    """Return requests equal to limits, so that a task gets its promised resources and no more.

    Except for node storage (layers, logs and emptyDirs together): its limit is the setting, its request the job's
    reserved `disk`, or 0. Without a request Kubernetes would request the limit, and nodes with a smaller disk would
    refuse the pod.
    """
    amounts: dict[str, str] = {}
    for resource, amount in _RESOURCES.items():
        size = getattr(launch, amount.column) if amount.column else launch.amounts.get(amount.name, 0)
        if size:
            amounts[resource] = amount.unit.quantity(size)
    disk = amounts.pop(_STORAGE, "0")
    amounts |= {name: str(amount) for name, amount in launch.resources.items() if "/" in name and amount}
    amounts |= dict.fromkeys(parts.rdma, "1")
    if parts.device_resource and launch.devices:
        amounts[parts.device_resource] = str(
            sum(device.id.startswith(f"{parts.device_resource}#") for device in launch.devices)
        )
    requests, limits = dict(amounts), dict(amounts)
    if settings.storage_limit_bytes:
        limits[_STORAGE] = str(max(settings.storage_limit_bytes, int(disk)))
        requests[_STORAGE] = disk
    elif disk != "0":
        requests[_STORAGE] = disk
    return {name: amounts for name, amounts in (("requests", requests), ("limits", limits)) if amounts}


def _volumes(launch: TaskLaunch, parts: PodParts) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    volumes, mounts = storage_volumes(launch.storages)
    if launch.shm_bytes:
        volumes.append({"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": str(launch.shm_bytes)}})
        mounts.append({"name": "shm", "mountPath": "/dev/shm"})
    files = {key: secret.file for key, secret in secret_keys(launch).items() if secret.file}
    if files:
        items = [{"key": key, "path": key} for key in files]
        volumes.append(
            {"name": "secrets", "secret": {"secretName": parts.secret, "items": items, "defaultMode": 0o444}}
        )
        for key, path in files.items():
            where = path if path.startswith("/") else f"{SECRET_FOLDER}/{path}"
            mounts.append({"name": "secrets", "mountPath": where, "subPath": key, "readOnly": True})
    return volumes, mounts


def _said(toleration: Toleration) -> dict[str, str]:
    return {name: value for name, value in msgspec.structs.asdict(toleration).items() if value}


def _literal(text: str) -> str:
    """Escape text for the container: Kubernetes expands `$(NAME)` in commands and values, and turns `$$` into `$`."""
    return text.replace("$", "$$")
