"""Run one probe pod to check whether nodes reach the registry and pods reach the server.

It runs on one ready node with the images that jobs will use, pulled anew, and is deleted afterwards.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from corral.engines.kind import Finding
from corral.engines.kubernetes.api.resources import NODES, PODS, Call
from corral.engines.kubernetes.api.transport import Transport
from corral.engines.kubernetes.doctor.node_check import Raw
from corral.engines.kubernetes.pods.labels import MANAGED
from corral.engines.kubernetes.settings import KubernetesSettings
from corral.engines.kubernetes.watch.pod_structs import ContainerStatus, Pod
from corral.kernel.errors import CorralError

_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 0.5
_NO_CLIENT: Final = 42
_ASK: Final = f"""\
if command -v wget >/dev/null; then exec wget -q -T 10 -O /dev/null "$URL"; fi
if command -v curl >/dev/null; then exec curl -fsS -m 10 -o /dev/null "$URL"; fi
ask='import os, urllib.request; urllib.request.urlopen(os.environ["URL"], timeout=10)'
if command -v python3 >/dev/null; then exec python3 -c "$ask"; fi
exit {_NO_CLIENT}
"""
_PULLING: Final = frozenset({"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "InvalidImageName"})


async def probe(
    transport: Transport, settings: KubernetesSettings, *, url: str = "", node: str = ""
) -> AsyncIterator[Finding]:
    """Run the probe pod on this node, or any ready one, and yield findings. `url` is the server's address for pods."""
    if not settings.default_image:
        yield Finding("registry", "note", "no default image is set, so no image was pulled to try")
        return
    try:
        node = node or await _ready_node(transport)
        if not node:
            yield Finding("registry", "note", "no node is ready to try it on")
            return
        name = f"corral-doctor-{secrets.token_hex(4)}"
        await transport.ask(Call("create", PODS, settings.namespace), body=_manifest(name, node, settings, url))
        try:
            pod = await _ended(transport, settings.namespace, name)
        finally:
            with contextlib.suppress(CorralError):
                await transport.ask(Call("delete", PODS, settings.namespace, name), repeatable=True)
    except CorralError as error:
        yield Finding("registry", "bad", error.message)
        return
    images = {"image": settings.default_image, "runtime": settings.runtime_image, "server": url}
    for container in pod.status.container_statuses:
        yield _judged(container, images.get(container.name, ""), node)


async def _ready_node(transport: Transport) -> str:
    items = msgspec.json.decode(await transport.ask(Call("list", NODES)), type=Raw).items
    for item in items:
        conditions = {condition["type"]: condition["status"] for condition in item["status"].get("conditions", ())}
        if conditions.get("Ready") == "True" and not item["spec"].get("unschedulable"):
            return str(item["metadata"]["name"])
    return ""


def _manifest(name: str, node: str, settings: KubernetesSettings, url: str) -> bytes:
    again: dict[str, Any] = {"imagePullPolicy": "Always"}
    containers = [{"name": "image", "image": settings.default_image, "command": ["/bin/sh", "-c", "exit 0"]}]
    if settings.runtime_image:
        containers.append({"name": "runtime", "image": settings.runtime_image, "command": ["python3", "-c", ""]})
    if url:
        asks: dict[str, Any] = {"name": "server", "image": settings.default_image, "command": ["/bin/sh", "-c", _ASK]}
        containers.append(asks | {"env": [{"name": "URL", "value": f"{url.rstrip('/')}/healthz"}]})
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": "corral"}},
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "tolerations": [{"key": MANAGED, "operator": "Exists"}],
            "imagePullSecrets": [{"name": secret} for secret in settings.image_pull_secrets],
            "containers": [container | again for container in containers],
        },
    }
    return msgspec.json.encode(pod)


async def _ended(transport: Transport, namespace: str, name: str) -> Pod:
    """Wait until all containers have ended or cannot be pulled, or the time is over. Return the pod."""
    ends = asyncio.get_running_loop().time() + _SECONDS
    while True:
        pod = msgspec.json.decode(await transport.ask(Call("get", PODS, namespace, name)), type=Pod)
        states = [container.state for container in pod.status.container_statuses]
        settled = all(s.terminated or (s.waiting and s.waiting.reason in _PULLING) for s in states)
        if (states and settled) or pod.status.phase == "Failed" or asyncio.get_running_loop().time() > ends:
            return pod
        await asyncio.sleep(_LOOK_SECONDS)


def _judged(container: ContainerStatus, what: str, node: str) -> Finding:
    name = "server from pods" if container.name == "server" else "registry"
    waiting, ended = container.state.waiting, container.state.terminated
    if waiting is not None and waiting.reason in _PULLING:
        return Finding(name, "bad", f"{what} cannot be pulled on {node}: {' '.join(waiting.message.split())[:500]}")
    if ended is None:
        return Finding(name, "bad", f"{what}: nothing was seen of it on {node} within {_SECONDS:.0f} s")
    if container.name != "server":
        if ended.exit_code == 0:
            return Finding(name, "good", f"{what} was pulled and ran on {node}")
        return Finding(name, "bad", f"{what} was pulled on {node}, and did not run (exit code {ended.exit_code})")
    if ended.exit_code == _NO_CLIENT:
        return Finding(name, "note", f"the default image has nothing to ask {what} with (wget, curl or Python)")
    if ended.exit_code:
        return Finding(
            name, "bad", f"a pod on {node} does not reach {what}; set advertise to where pods reach the server"
        )
    return Finding(name, "good", f"a pod on {node} reaches {what}")
