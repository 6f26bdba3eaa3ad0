"""What kubeadm is told: its documents for the first control plane and for a worker, and the phases of each."""

from __future__ import annotations

from typing import Any, Final

import yaml

from corral.deploy.hosts.reader import CONTROL_PLANE, Host, Hosts

INIT: Final = (
    "preflight", "certs", "kubeconfig", "etcd", "control-plane", "kubelet-start", "wait-control-plane", "upload-config",
    "mark-control-plane", "bootstrap-token", "kubelet-finalize", "addon",
)  # fmt: skip
"""The first control plane."""
JOIN_CONTROL_PLANE: Final = (
    "preflight", "control-plane-prepare", "check-etcd", "kubelet-start", "etcd-join", "kubelet-wait-bootstrap",
    "control-plane-join", "wait-control-plane",
)  # fmt: skip
"""Each further control plane."""
JOIN: Final = ("preflight", "kubelet-start", "kubelet-wait-bootstrap")
"""A worker."""
API_PORT: Final = 6443
CLOSED: Final = "corral.dev/validating"
"""The key of the taint that keeps tasks away from a node until it is validated; Corral's validation job tolerates it."""
_API: Final = "kubeadm.k8s.io/v1beta4"
_WORKER: Final = "worker"


def init_text(mark: str, hosts: Hosts, host: Host, address: str, endpoint: str = "") -> str:
    """The documents for the first control plane, and those of the list; keys are made on the host and are not in them.

    `endpoint` reaches any of several control planes, with its port; "" where there is one. kubeadm insists on a first
    bootstrap token: it expires at once, and its join command is not printed.
    """
    chosen = hosts.kubernetes
    cluster: dict[str, Any] = {
        "apiVersion": _API,
        "kind": "ClusterConfiguration",
        "clusterName": hosts.cluster,
        "kubernetesVersion": f"v{chosen.version}",
        "networking": {"podSubnet": chosen.pod_subnet, "serviceSubnet": chosen.service_subnet},
    }
    if endpoint:
        cluster["controlPlaneEndpoint"] = endpoint
    node = _node(host, address)
    if _WORKER in host.roles:
        node["taints"] = []
    start = {
        "apiVersion": _API,
        "kind": "InitConfiguration",
        "bootstrapTokens": [{"ttl": "1s"}],
        "localAPIEndpoint": {"advertiseAddress": address, "bindPort": API_PORT},
        "nodeRegistration": node,
        "skipPhases": ["show-join-command"],
    }
    others = yaml.safe_load_all(chosen.kubeadm) if chosen.kubeadm else ()
    return mark + yaml.safe_dump_all([cluster, start, *others], sort_keys=False)


def join_text(
    host: Host, address: str, endpoint: str, token: str, authority: str, *, closed: bool = False, key: str = ""
) -> str:  # fmt: skip
    """The document for a node, with the token and the hash of the certificate authority that it may trust.

    A node that is `closed` joins with the taint that keeps tasks away until it is validated. With a `key` it becomes a
    control plane: the key opens the certificates that the first one uploaded.
    """
    node = _node(host, address)
    if key and _WORKER in host.roles:
        node["taints"] = []
    if closed:
        node["taints"] = [{"key": CLOSED, "effect": "NoSchedule"}]
    trust = {"apiServerEndpoint": endpoint, "caCertHashes": [f"sha256:{authority}"], "token": token}
    start: dict[str, Any] = {
        "apiVersion": _API,
        "kind": "JoinConfiguration",
        "discovery": {"bootstrapToken": trust, "tlsBootstrapToken": token},
        "nodeRegistration": node,
    }
    if key:
        local = {"advertiseAddress": address, "bindPort": API_PORT}
        start["controlPlane"] = {"certificateKey": key, "localAPIEndpoint": local}
    return yaml.safe_dump(start, sort_keys=False)


def endpoint_of(address: str) -> str:
    """The address of the API with its port."""
    return f"[{address}]:{API_PORT}" if ":" in address else f"{address}:{API_PORT}"


def is_control_plane(host: Host) -> bool:
    """Whether a host is, or becomes, a control plane."""
    return CONTROL_PLANE in host.roles


def _node(host: Host, address: str) -> dict[str, Any]:
    return {
        "name": host.name,
        "criSocket": "unix:///run/containerd/containerd.sock",
        "kubeletExtraArgs": [{"name": "node-ip", "value": address}],
    }
