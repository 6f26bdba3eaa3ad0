"""The phases of kubeadm by the part that a host plays, as kubeadm 1.34 has them."""

from __future__ import annotations

from typing import Final

INIT: Final = (
    "preflight", "certs", "kubeconfig", "etcd", "control-plane", "kubelet-start", "wait-control-plane", "upload-config",
    "upload-certs", "mark-control-plane", "bootstrap-token", "kubelet-finalize", "addon",
    "show-join-command",
)  # fmt: skip
"""The first control plane."""
JOIN_CONTROL_PLANE: Final = (
    "preflight", "control-plane-prepare", "check-etcd", "kubelet-start", "etcd-join", "kubelet-wait-bootstrap",
    "control-plane-join", "wait-control-plane",
)  # fmt: skip
"""Each further control plane."""
JOIN: Final = ("preflight", "kubelet-start", "kubelet-wait-bootstrap")
"""A worker."""
