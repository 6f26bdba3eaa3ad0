"""What hosts are to each other: names and addresses that clash, MTUs that differ, ports that are closed between them."""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from corral.deploy.checks.facts import Facts
from corral.deploy.checks.findings import Finding, Reporter
from corral.deploy.checks.port_rules import Call, calls_among, ports_of, purpose_of
from corral.deploy.hosts.reader import Host, Hosts

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
    untried: Mapping[str, str] = field(default_factory=dict)
    """Why a host took no part."""


def findings_between(hosts: Hosts, facts: Mapping[str, Facts], trial: PortTrial) -> Iterator[Finding]:
    """All findings about hosts that were reached, beside each other."""
    reached = [host for host in hosts.hosts if host.name in facts]
    yield from _names(reached, facts)
    yield from _addresses(hosts, reached, facts)
    yield from _mtu(reached, facts)
    yield from _architectures(reached, facts)
    yield from _ports(reached, facts, trial)


def cluster_address(host: Host, facts: Facts) -> str:
    """The address at which other hosts reach a host."""
    return host.internal_address or facts.reached


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


def _addresses_of(facts: Facts) -> set[str]:
    """The addresses of real interfaces that other machines reach."""
    found = [each.address for each in facts.addresses if not _OF_CONTAINERS.fullmatch(each.interface)]
    return {
        each
        for each in found
        if not ipaddress.ip_address(each).is_loopback and not ipaddress.ip_address(each).is_link_local
    }


def _mtu(hosts: Sequence[Host], facts: Mapping[str, Facts]) -> Iterator[Finding]:
    sizes = {host.name: size for host in hosts if (size := _mtu_of(host, facts[host.name])) is not None}
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


def _mtu_of(host: Host, facts: Facts) -> int | None:
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


_SPOKEN: Final = {
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
        taken = [port for port in ports_of(host) if trial.bound.get((host.name, port)) == "taken"]
        for port in taken if not facts[host.name].leftovers else ():
            remedy = f"Find the program (ss -ltnp 'sport = :{port}') and stop it."
            yield tell.fail("ports", f"another program listens at port {port}, which {purpose_of(port)} needs", remedy)
        for port in sorted({call.port for call, _ in closed.get(host.name, ())}):
            lost = [(call.caller, result) for call, result in closed[host.name] if call.port == port]
            callers = ", ".join(caller for caller, _ in lost[:5]) + (
                f" and {len(lost) - 5} more" if len(lost) > 5 else ""
            )
            message = f"port {port} ({purpose_of(port)}) {_SPOKEN[lost[0][1]]} from {callers}"
            yield tell.fail(
                "ports", message, f"Open TCP port {port} to those hosts in the firewalls of both, and between them."
            )
        if host.name not in trial.untried and host.name not in closed and not taken and ports_of(host):
            count = sum(call.listener == host.name for call in trial.calls)
            if count:
                yield tell.ok("ports", f"{count} ways to its ports are open")
