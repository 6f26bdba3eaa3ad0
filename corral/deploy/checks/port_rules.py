"""The ports of a cluster: who listens, who calls, and which pairs of hosts must reach each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from corral.deploy.hosts.reader import CONTROL_PLANE, Host, Hosts


class PortRule(NamedTuple):
    """A port that hosts of some roles listen at, for hosts of others."""

    port: int
    purpose: str
    listeners: frozenset[str]
    callers: frozenset[str]


_PLANE: Final = frozenset({CONTROL_PLANE})
_NODES: Final = frozenset({CONTROL_PLANE, "worker"})
_HADOOP: Final = frozenset({"hadoop"})
RULES: Final = (
    PortRule(6443, "Kubernetes' API", _PLANE, _NODES),
    PortRule(2379, "etcd's clients", _PLANE, _PLANE),
    PortRule(2380, "etcd's members", _PLANE, _PLANE),
    PortRule(10250, "the kubelet", _NODES, _NODES),
    PortRule(2049, "NFS", frozenset({"storage"}), _NODES),
    PortRule(8020, "HDFS' NameNode", _HADOOP, _HADOOP | _NODES),
    PortRule(9866, "HDFS' DataNode", _HADOOP, _HADOOP | _NODES),
    PortRule(8032, "YARN's ResourceManager", _HADOOP, _HADOOP | _NODES),
    PortRule(8041, "YARN's NodeManager", _HADOOP, _HADOOP),
)
"""Those of TCP."""
VXLAN: Final = 8472
"""The UDP port of the pods' network, which all nodes send to each other."""
OF_KUBERNETES: Final = frozenset({6443, 2379, 2380, 10250})
"""The ports that a cluster of Kubernetes needs."""
OF_HADOOP: Final = frozenset({8020, 9866, 8032, 8041})
"""Those that Hadoop needs."""


class Call(NamedTuple):
    """One host that must reach a port of another."""

    caller: str
    listener: str
    port: int


def packets_among(hosts: Sequence[Host]) -> Iterator[Call]:
    """All pairs of nodes, which send the packets of pods to each other."""
    nodes = [host for host in hosts if _NODES & set(host.roles)]
    yield from (Call(one.name, other.name, VXLAN) for other in nodes for one in nodes if one is not other)


def ports_of(host: Host) -> tuple[int, ...]:
    """The ports that a host listens at."""
    return tuple(rule.port for rule in RULES if rule.listeners & set(host.roles))


NODE_EXPORTER: Final = 9100


def ports_of_parts(hosts: Hosts) -> dict[int, str]:
    """The ports that parts of the list take on every node, and what for; pods listen there, once they run."""
    found: dict[int, str] = {}
    if hosts.corral is not None:
        found[hosts.corral.port] = "the portal"
    if hosts.monitoring is not None and hosts.monitoring.node_exporter:
        found[NODE_EXPORTER] = "node exporter"
    return found


def purpose_of(port: int) -> str:
    """What a port is for."""
    return next((rule.purpose for rule in RULES if rule.port == port), "")


def calls_among(hosts: Sequence[Host]) -> Iterator[Call]:
    """All pairs of hosts that must reach each other, with each port."""
    for rule in RULES:
        for listener in hosts:
            for caller in hosts if rule.listeners & set(listener.roles) else ():
                if caller is not listener and rule.callers & set(caller.roles):
                    yield Call(caller.name, listener.name, rule.port)
