"""What hosts are to each other: names and addresses that clash, MTUs that differ, ports that are closed between them."""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from corral.deploy.checks.facts import Facts
from corral.deploy.checks.findings import Finding, Reporter
from corral.deploy.checks.ours import (
    LOOPBACK,
    REGISTRY_UNIT_FILE,
    balanced_servers,
    begun,
    has_hadoop,
    is_node,
    made_by_up,
)
from corral.deploy.checks.port_rules import OF_HADOOP, VXLAN, Call, calls_among, ports_of, ports_of_parts, purpose_of
from corral.deploy.hosts.reader import CONTROL_PLANE, Host, Hosts

LEAST_MTU: Final = 1280
_OF_CONTAINERS: Final = re.compile(
    r"lo|docker\d*|br-.*|cni\d*|flannel.*|virbr\d*|veth.*|podman\d*|cilium.*|cali.*|lxc.*"
)
"""Interfaces whose addresses are the same on many machines."""


@dataclass(frozen=True, slots=True)
class PortTrial:
    """What became of trying ports: `bound` by listener and port, `calls` by pair and port, `untried` by host."""

    bound: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """free (the probe listened), taken (another program does) or denied."""
    calls: Mapping[Call, str] = field(default_factory=dict)
    """open, refused, silent or unreachable."""
    packets: Mapping[Call, str] = field(default_factory=dict)
    """Of UDP: open, small where no large packets get through, or silent."""
    untried: Mapping[str, str] = field(default_factory=dict)
    """Why a host took no part."""


def findings_between(hosts: Hosts, facts: Mapping[str, Facts], trial: PortTrial) -> Iterator[Finding]:
    """All findings about hosts that were reached, beside each other."""
    reached = [host for host in hosts.hosts if host.name in facts]
    # Of two that clash, the one that is not a node yet is told of.
    nodes_first = sorted(reached, key=lambda host: not is_node(facts[host.name]))
    yield from _names(nodes_first, facts)
    yield from _addresses(hosts, nodes_first, facts)
    yield from _clusters(hosts, reached, facts)
    yield from _mtu(reached, facts)
    yield from _architectures(reached, facts)
    yield from _ports(reached, facts, trial)
    yield from _packets(reached, facts, trial)
    yield from _ports_of_parts(hosts, reached, facts)


def cluster_address(host: Host, facts: Facts) -> str:
    """The address at which other hosts reach a host."""
    return host.internal_address or facts.reached


def registry_endpoint(hosts: Hosts, facts: Mapping[str, Facts]) -> str:
    """HOST:PORT at which hosts reach the cluster's own registry; "" where there is none, or its host was not reached."""
    head = hosts.named(hosts.registry.host) if hosts.registry is not None else None
    if hosts.registry is None or head is None or head.name not in facts:
        return ""
    address = cluster_address(head, facts[head.name])
    return f"[{address}]:{hosts.registry.port}" if ":" in address else f"{address}:{hosts.registry.port}"


def _names(hosts: Sequence[Host], facts: Mapping[str, Facts]) -> Iterator[Finding]:
    by_name: dict[str, str] = {}
    by_system: dict[str, str] = {}
    for host in hosts:
        tell, own = Reporter(host.name), facts[host.name]
        twin = by_system.setdefault(own.machine, host.name) if own.machine else host.name
        namesake = by_name.setdefault(own.hostname, host.name)
        if twin != host.name and _addresses_of(own) & _addresses_of(facts[twin]):
            yield tell.fail("names", f"it is the same machine as {twin}", "Take one of the two off the list.")
        elif twin != host.name:
            remedy = "As root on one of the two: rm /etc/machine-id && systemd-machine-id-setup, then restart it."
            yield tell.fail("names", f"it has the machine id of {twin}, as a copy of the same disk has", remedy)
        elif namesake != host.name:
            remedy = f"As root: hostnamectl set-hostname {host.name}"
            yield tell.fail("names", f"it calls itself {own.hostname}, as {namesake} does", remedy)
        else:
            yield tell.ok("names", f"it calls itself {own.hostname}")


def _addresses(hosts: Hosts, reached: Sequence[Host], facts: Mapping[str, Facts]) -> Iterator[Finding]:
    subnets = [ipaddress.ip_network(each) for each in (hosts.kubernetes.pod_subnet, hosts.kubernetes.service_subnet)]
    owners: dict[str, str] = {}
    machines = {facts[host.name].machine or host.name: host.name for host in reversed(reached)}
    for host in reached:
        own = facts[host.name]
        if machines[own.machine or host.name] != host.name:
            continue  # a twin is told of already
        tell = Reporter(host.name)
        for address in sorted(_addresses_of(own)):
            first = owners.setdefault(address, host.name)
            if first != host.name:
                remedy = "Give each of the two an address of its own."
                yield tell.fail("addresses", f"it has the address {address}, as {first} does", remedy)
            for subnet in subnets:
                if ipaddress.ip_address(address) in subnet:
                    remedy = "Choose other podSubnet and serviceSubnet in the list."
                    yield tell.fail("addresses", f"its address {address} lies in {subnet}, of pods or services", remedy)


def _clusters(hosts: Hosts, reached: Sequence[Host], facts: Mapping[str, Facts]) -> Iterator[Finding]:
    """Nodes that `up` made of another list of hosts."""
    planes = [host for host in hosts.hosts if CONTROL_PLANE in host.roles]
    if not all(host.name in facts for host in planes):
        return
    expected = {hosts.kubernetes.endpoint, *(cluster_address(host, facts[host.name]) for host in planes)}
    for host in reached:
        joined = facts[host.name].joined
        if joined == LOOPBACK:  # its own balancer leads to the control planes
            joined = next((each for each in balanced_servers(facts[host.name]).values() if each in expected), joined)
        if planes and joined and is_node(facts[host.name]) and joined not in expected:
            remedy = f"If it is not needed there: corral deploy reset --host {host.name}, with that cluster's list."
            yield Reporter(host.name).fail("remains", f"it is a node of another cluster, at {joined}", remedy)


def _addresses_of(facts: Facts) -> set[str]:
    """The addresses of real interfaces that other machines reach."""
    found = [each.address for each in facts.addresses if not _OF_CONTAINERS.fullmatch(each.interface)]
    return {
        each
        for each in found
        if not ipaddress.ip_address(each).is_loopback and not ipaddress.ip_address(each).is_link_local
    }


def _mtu(hosts: Sequence[Host], facts: Mapping[str, Facts]) -> Iterator[Finding]:
    sizes = {host.name: size for host in hosts if (size := mtu_of(host, facts[host.name])) is not None}
    usual = Counter(sizes.values()).most_common(1)
    for name, size in sizes.items():
        tell = Reporter(name)
        if size < LEAST_MTU:
            yield tell.fail(
                "mtu", f"packets of at most {size} bytes", f"Raise the interface's MTU to {LEAST_MTU} or more."
            )
        elif size != usual[0][0]:
            remedy = "Give all interfaces of one network the same MTU, else large packets are lost."
            yield tell.fail("mtu", f"packets of {size} bytes, and of {usual[0][0]} on most hosts", remedy)
        else:
            yield tell.ok("mtu", f"packets of {size} bytes")


def _packets(hosts: Sequence[Host], facts: Mapping[str, Facts], trial: PortTrial) -> Iterator[Finding]:
    """Ways on which packets of the pods' network are lost, all or the large ones."""
    for host in hosts:
        tell = Reporter(host.name)
        by_word: dict[str, list[str]] = {}
        for call, word in trial.packets.items():
            if call.listener == host.name:
                by_word.setdefault(word, []).append(call.caller)
        if lost := by_word.get("silent"):
            yield tell.fail(
                "udp", f"port {VXLAN} (the pods' network) is not answered from {shown(lost)}",
                f"Open UDP port {VXLAN} to those hosts in the firewalls of both, and between them.",
            )  # fmt: skip
        if lost := by_word.get("small"):
            size = mtu_of(host, facts[host.name])
            yield tell.fail(
                "mtu", f"packets of up to {size} bytes from {shown(lost)} are lost on the way, and small ones are not",
                "Find the smaller MTU on the way (tracepath), and give the interfaces of all hosts that one.",
            )  # fmt: skip
        if by_word.keys() == {"open"}:
            yield tell.ok("udp", f"packets of all sizes come from {len(by_word['open'])} nodes")


def shown(names: Sequence[str]) -> str:
    """Names for people: five at most, and how many more there are."""
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def mtu_of(host: Host, facts: Facts) -> int | None:
    """The MTU of the interface that has the address for the cluster's traffic."""
    address = cluster_address(host, facts)
    name = next((each.interface for each in facts.addresses if each.address == address), facts.route)
    return next((each.mtu for each in facts.interfaces if each.name == name), None)


def _architectures(hosts: Sequence[Host], facts: Mapping[str, Facts]) -> Iterator[Finding]:
    usual = Counter(facts[host.name].arch for host in hosts).most_common(1)
    for host in hosts:
        arch = facts[host.name].arch
        if arch != usual[0][0]:
            remedy = "Images and packages of both architectures are needed; or take it off the list."
            yield Reporter(host.name).warn("os", f"it runs on {arch}, and most hosts on {usual[0][0]}", remedy)


SPOKEN: Final = {
    "refused": "is refused",
    "silent": "is not answered",
    "unreachable": "finds no way",
}


def _ports(hosts: Sequence[Host], facts: Mapping[str, Facts], trial: PortTrial) -> Iterator[Finding]:
    closed: dict[str, list[tuple[Call, str]]] = {}
    for call in calls_among(hosts):
        result = trial.calls.get(call)
        if result is not None and result != "open":
            closed.setdefault(call.listener, []).append((call, result))
    for host in hosts:
        tell = Reporter(host.name)
        if host.name in trial.untried:
            yield tell.warn(
                "ports", f"its ports were not tried: {trial.untried[host.name]}", "Try them by hand (nc -l, nc)."
            )
        taken = list(taken_ports(tell, host.name, facts[host.name], trial, ports_of(host)))
        yield from taken
        for port in sorted({call.port for call, _ in closed.get(host.name, ())}):
            lost = [(call.caller, result) for call, result in closed[host.name] if call.port == port]
            callers = shown([caller for caller, _ in lost])
            message = f"port {port} ({purpose_of(port)}) {SPOKEN[lost[0][1]]} from {callers}"
            yield tell.fail(
                "ports", message, f"Open TCP port {port} to those hosts in the firewalls of both, and between them."
            )
        if host.name not in trial.untried and host.name not in closed and not taken and ports_of(host):
            count = sum(call.listener == host.name for call in trial.calls)
            if count:
                yield tell.ok("ports", f"{count} ways to its ports are open")


def _ports_of_parts(hosts: Hosts, reached: Sequence[Host], facts: Mapping[str, Facts]) -> Iterator[Finding]:
    """Ports of the list's parts at which something listens on a host that is no node yet."""
    for host in reached:
        own = facts[host.name]
        yield from registry_port_taken(hosts, host, own)
        if not host.in_kubernetes or begun(own):
            continue
        for port, part in ports_of_parts(hosts).items():
            yield from _taken_by_another(host, own, port, part)


def registry_port_taken(hosts: Hosts, host: Host, own: Facts) -> Iterator[Finding]:
    """The port of the cluster's own registry, where another program has it on the registry's host."""
    if hosts.registry is not None and hosts.registry.host == host.name and REGISTRY_UNIT_FILE not in own.files:
        yield from _taken_by_another(host, own, hosts.registry.port, "the registry")


def _taken_by_another(host: Host, own: Facts, port: int, part: str) -> Iterator[Finding]:
    if port in own.listens:
        message = f"another program listens at port {port}, which {part} needs"
        yield Reporter(host.name).fail("ports", message, _find_listener(port))


def _find_listener(port: int) -> str:
    return f"Find the program (ss -ltnp 'sport = :{port}') and stop it."


def taken_ports(
    tell: Reporter, name: str, own: Facts, trial: PortTrial, ports: Iterable[int]
) -> Iterator[Finding]:  # fmt: skip
    """Those of a host's ports that another program has.

    Those of Kubernetes are its own where kubeadm began or another cluster is, and those of Hadoop where `up` began it.
    """
    of_cluster = begun(own) or (own.leftovers and not made_by_up(own))
    for port in ports:
        its_own = has_hadoop(own) if port in OF_HADOOP else of_cluster
        if not its_own and trial.bound.get((name, port)) == "taken":
            message = f"another program listens at port {port}, which {purpose_of(port)} needs"
            yield tell.fail("ports", message, _find_listener(port))
