"""The pods' network: flannel's DaemonSet and its rights, and the CNI configuration of each host."""

from __future__ import annotations

import json
from typing import Any, Final

import yaml

IMAGE: Final = "ghcr.io/flannel-io/flannel:v0.26.7"
NAMESPACE: Final = "kube-flannel"
DAEMON_SET: Final = "kube-flannel-ds"
CNI_FILE: Final = "/etc/cni/net.d/10-flannel.conflist"
CNI: Final = json.dumps(
    {
        "cniVersion": "0.3.1",
        "name": "cbr0",
        "plugins": [
            {"type": "flannel", "delegate": {"hairpinMode": True, "isDefaultGateway": True}},
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    },
    indent=2,
) + "\n"  # fmt: skip
_RULES: Final = [
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
]
_LABELS: Final = {"app": "flannel"}


def network_text(mark: str, pod_subnet: str) -> str:
    """The objects of the network, as kubectl applies them; VXLAN goes over the address by which a node is known."""
    family = {"EnableIPv4": False, "EnableIPv6": True, "IPv6Network": pod_subnet} if ":" in pod_subnet else {}
    settings = (
        {"Network": pod_subnet, "Backend": {"Type": "vxlan"}}
        if not family
        else {**family, "Backend": {"Type": "vxlan"}}
    )
    owner = {"kind": "ServiceAccount", "name": "flannel", "namespace": NAMESPACE}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "flannel"}
    objects: list[dict[str, Any]] = [
        # flanneld changes routes and packet filters of its node.
        _object("v1", "Namespace", NAMESPACE, labels={"pod-security.kubernetes.io/enforce": "privileged"}),
        _object("v1", "ServiceAccount", "flannel", NAMESPACE),
        _object("rbac.authorization.k8s.io/v1", "ClusterRole", "flannel") | {"rules": _RULES},
        _object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "flannel")
        | {"roleRef": role, "subjects": [owner]},
        _object("v1", "ConfigMap", "kube-flannel-cfg", NAMESPACE) | {"data": {"net-conf.json": json.dumps(settings)}},
        _object("apps/v1", "DaemonSet", DAEMON_SET, NAMESPACE)
        | {
            "spec": {
                "selector": {"matchLabels": _LABELS},
                "template": {"metadata": {"labels": _LABELS}, "spec": _pod()},
            }
        },
    ]
    return mark + yaml.safe_dump_all(objects, sort_keys=False)


def _object(version: str, kind: str, name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    where = {"namespace": namespace} if namespace else {}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **where, **more}}


def _pod() -> dict[str, Any]:
    def field(path: str) -> dict[str, Any]:
        return {"fieldRef": {"fieldPath": path}}

    container = {
        "name": "kube-flannel",
        "image": IMAGE,
        "command": ["/opt/bin/flanneld"],
        "args": ["--ip-masq", "--kube-subnet-mgr", "--iface=$(HOST_ADDRESS)"],
        "env": [
            {"name": "POD_NAME", "valueFrom": field("metadata.name")},
            {"name": "POD_NAMESPACE", "valueFrom": field("metadata.namespace")},
            {"name": "HOST_ADDRESS", "valueFrom": field("status.hostIP")},
        ],
        "resources": {"requests": {"cpu": "100m", "memory": "50Mi"}},
        "securityContext": {"privileged": False, "capabilities": {"add": ["NET_ADMIN", "NET_RAW"]}},
        "volumeMounts": [
            {"name": "run", "mountPath": "/run/flannel"},
            {"name": "settings", "mountPath": "/etc/kube-flannel/"},
            {"name": "xtables-lock", "mountPath": "/run/xtables.lock"},
        ],
    }
    return {
        "hostNetwork": True,
        "priorityClassName": "system-node-critical",
        "serviceAccountName": "flannel",
        "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
        "containers": [container],
        "volumes": [
            {"name": "run", "hostPath": {"path": "/run/flannel", "type": "DirectoryOrCreate"}},
            {"name": "settings", "configMap": {"name": "kube-flannel-cfg"}},
            {"name": "xtables-lock", "hostPath": {"path": "/run/xtables.lock", "type": "FileOrCreate"}},
        ],
    }
