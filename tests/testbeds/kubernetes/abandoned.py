"""Start a node with a running pod and be killed, as a test is that the machine ends: nothing of the node is closed.

Usage: python -m tests.testbeds.kubernetes.abandoned NODE NAMESPACE < the control plane, as `told_of` writes it

A process of its own, as a fork of a test that has threads may wait for ever for a lock that one of them held.
"""

from __future__ import annotations

import json
import os
import signal
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.testbeds.kubernetes import images
from tests.testbeds.kubernetes.controlplane import ControlPlane, Refused
from tests.testbeds.kubernetes.kubelet import KubeletNode
from tests.waiting import pause


def told_of(plane: ControlPlane, node: str) -> str:
    """What the process needs to know of a control plane to start a node of this name, as JSON."""
    kubeconfig = plane.kubeconfig_for(f"system:node:{node}", ["system:nodes"])
    return json.dumps(
        {
            "url": plane.url, "token": plane.token, "ca": str(plane.ca), "port": plane.port,
            "service_address": plane.service_address, "kubeconfig": str(kubeconfig),
        }
    )  # fmt: skip


class ToldOf:
    """The control plane of another process."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.url, self.token, self.port = told["url"], told["token"], told["port"]
        self.ca, self.service_address = Path(told["ca"]), told["service_address"]
        self._kubeconfig = Path(told["kubeconfig"])
        context = ssl.create_default_context(cafile=told["ca"])
        https = urllib.request.HTTPSHandler(context=context)
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), https)

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path:
        """That of the node."""
        return self._kubeconfig

    def request(
        self, method: str, path: str, body: Any = None, *, content: str = "application/json", seconds: float = 30
    ) -> Any:
        """One request as the administrator; returns the JSON. Raises Refused, and OSError when there is no answer."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content}
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with self._opener.open(asked, timeout=seconds) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise Refused(error.code, error.read().decode(errors="replace")) from None


def main(node: str, namespace: str) -> None:
    plane = ToldOf(json.load(sys.stdin))
    KubeletNode(plane, node)
    container = {"name": "task", "image": images.BUSYBOX, "command": ["sleep", "600"]}
    spec = {"nodeName": node, "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}
    plane.request("POST", f"/api/v1/namespaces/{namespace}/pods", {"metadata": {"name": "a"}, "spec": spec})
    begun = time.monotonic()
    while plane.request("GET", f"/api/v1/namespaces/{namespace}/pods/a")["status"].get("phase") != "Running":
        if time.monotonic() - begun > 120:
            raise RuntimeError("the pod does not run after 120 s")
        time.sleep(pause(begun))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Exception as error:  # the node is left as it is here too; the test reads why
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
