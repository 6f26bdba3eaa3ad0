"""Whether what stands on a host is of `corral deploy up`, and whether the host is a node already."""

from __future__ import annotations

import re
from typing import Final

from corral.deploy.checks.facts import Facts

MARK: Final = "# Written by corral deploy.\n"
"""The first line of each file that `up` writes."""
CONTAINERD_UNIT_FILE: Final = "/etc/systemd/system/containerd.service"
KUBELET_UNIT_FILE: Final = "/etc/systemd/system/kubelet.service"
ADMIN, KUBELET = "/etc/kubernetes/admin.conf", "/etc/kubernetes/kubelet.conf"
BALANCER_FILE, BALANCER_UNIT_FILE = "/etc/kubernetes/corral-balancer.cfg", "/etc/systemd/system/corral-balancer.service"
REGISTRY_UNIT_FILE: Final = "/etc/systemd/system/corral-registry.service"
LOOPBACK: Final = "127.0.0.1"
"""The address of a host's own balancer."""
_SERVER: Final = re.compile(r"^  server (\S{1,300}) \[?([0-9A-Za-z.:-]{1,300}?)\]?:[0-9]{1,5}$", re.MULTILINE)
HADOOP_FILE: Final = "/etc/corral-hadoop/java.options"
"""The first file of Hadoop that `up` writes."""
UNFINISHED_NODE: Final = "kubeadm"
"""What a host keeps a mark of while kubeadm has begun and not ended."""


def made_by_up(own: Facts) -> bool:
    """Whether `up` wrote the units of a host, so that what is there of Kubernetes is its own."""
    units = (own.files.get(path, b"") for path in (KUBELET_UNIT_FILE, CONTAINERD_UNIT_FILE))
    return any(text.startswith(MARK.encode()) for text in units)


def begun(own: Facts) -> bool:
    """Whether kubeadm has begun on a host by `up`, so that listeners at the cluster's ports are its own."""
    return made_by_up(own) and (not {ADMIN, KUBELET}.isdisjoint(own.leftovers) or UNFINISHED_NODE in own.unfinished)


def is_node(own: Facts) -> bool:
    """Whether a host has joined a cluster by `up`, begun and ended."""
    return made_by_up(own) and KUBELET in own.leftovers and UNFINISHED_NODE not in own.unfinished


def has_hadoop(own: Facts) -> bool:
    """Whether `up` has begun Hadoop on a host, so that listeners at its ports are its own."""
    return HADOOP_FILE in own.files


def balanced_servers(own: Facts) -> dict[str, str]:
    """The addresses of the control planes that a host's balancer leads to, by name."""
    text = own.files.get(BALANCER_FILE, b"").decode(errors="replace")
    return {found[1]: found[2] for found in _SERVER.finditer(text)}
