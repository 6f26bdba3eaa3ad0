"""Which failures of the check keep `up` from touching a host: what would stop its steps, or do harm."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from corral.deploy.checks.between_hosts import SPOKEN, PortTrial, registry_port_taken, taken_ports
from corral.deploy.checks.connection import Refusal
from corral.deploy.checks.findings import FAILURE, Finding, Reporter
from corral.deploy.checks.ours import has_hadoop, is_node
from corral.deploy.checks.port_rules import OF_HADOOP, OF_KUBERNETES, ports_of, purpose_of
from corral.deploy.checks.report import Survey, findings_of
from corral.deploy.hosts.reader import CONTROL_PLANE, Hosts

STOPPING: Final = (
    "sudo", "os", "kernel", "cgroups", "clock", "disk", "dns", "modules", "remains", "names", "addresses", "ports",
)  # fmt: skip
"""Checks whose failures keep a host out; `up` itself turns swap off, and the others can be mended later."""
_OF_NODES: Final = ("sudo", "clock", "remains", "names", "addresses")
"""Those that keep a host out that is a node already: nothing large is installed on it, and its ports are in use."""
OF_UPGRADES: Final = (*_OF_NODES, "kernel", "cgroups", "disk")
"""Those that keep a node from being upgraded: a new version may ask more of its kernel, and is large."""
OF_NEW_NODES: Final = (*STOPPING, "cpu", "memory", "devices", "driver", "mtu")
"""Those that keep a host out that is added to a running cluster: a node is offered only as the list describes it."""
ALL: Final = "all"


def refusals_before_up(
    hosts: Hosts, survey: Survey, skipped: Collection[str], checks: Collection[str] = STOPPING,
    of_nodes: Collection[str] = _OF_NODES,
) -> dict[str, Refusal]:  # fmt: skip
    """Why each host is left out that is: the first finding in one sentence, and its remedy."""
    found: dict[str, list[Finding]] = {}
    for each in _stopping(hosts, survey, checks, of_nodes) if ALL not in skipped else ():
        host = hosts.named(each.host)
        if each.check not in skipped and host is not None and hosts.works_on(host):
            found.setdefault(each.host, []).append(each)
    return {name: _refusal(findings) for name, findings in found.items()}


def needs_ports(hosts: Hosts, survey: Survey, names: Collection[str], skipped: Collection[str]) -> bool:
    """Whether the trial of ports may keep out a host of these names; a node is kept out only before it has Hadoop."""
    there = [(host, survey.seen[host.name].facts) for host in hosts.hosts if host.name in {*names} & survey.seen.keys()]
    return ALL not in skipped and any(
        not is_node(own) or (hosts.has_hadoop(host) and not has_hadoop(own)) for host, own in there
    )


def passed_over(hosts: Hosts, survey: Survey, names: Collection[str]) -> list[Finding]:
    """The failures on hosts of these names that do not keep `up` from going on; it mends swap itself."""
    return [
        each
        for each in findings_of(hosts, survey)
        if each.level == FAILURE and each.host in names and each.check not in (*STOPPING, "ssh", "swap")
    ]


def _stopping(
    hosts: Hosts, survey: Survey, of_others: Collection[str], of_nodes: Collection[str]
) -> Iterator[Finding]:  # fmt: skip
    nodes = {name for name, seen in survey.seen.items() if is_node(seen.facts)}
    for each in findings_of(hosts, survey):
        checks = of_nodes if each.host in nodes else of_others
        if each.level == FAILURE and each.check in checks and each.check != "ports":
            yield each
    for host in hosts.hosts:
        own = survey.seen.get(host.name)
        if own is not None:
            needed = OF_KUBERNETES | (OF_HADOOP if hosts.has_hadoop(host) else frozenset())
            ports = [port for port in ports_of(host) if port in needed]
            yield from taken_ports(Reporter(host.name), host.name, own.facts, survey.trial, ports)
            yield from registry_port_taken(hosts, host, own.facts)
    yield from _closed(hosts, nodes, survey.trial)


def _closed(hosts: Hosts, nodes: Collection[str], trial: PortTrial) -> Iterator[Finding]:
    """Closed ways between a control plane and another host, told of the other: it would not join, or have no logs."""
    order = [host.name for host in hosts.hosts if CONTROL_PLANE in host.roles]
    for call, result in trial.calls.items():
        planes = sorted({call.caller, call.listener} & set(order), key=order.index)
        if result == "open" or call.port not in OF_KUBERNETES or not planes:
            continue
        other = call.caller if call.listener == planes[0] else call.listener
        if other in nodes:
            continue
        at = f"port {call.port} ({purpose_of(call.port)}) of {call.listener}"
        remedy = f"Open TCP port {call.port} in the firewalls of {call.listener} and {call.caller}, and between them."
        yield Reporter(other).fail("ports", f"{at} {SPOKEN[result]} from {call.caller}", remedy)


def _refusal(findings: Sequence[Finding]) -> Refusal:
    first, more = findings[0], len(findings) - 1
    others = f" ({more} more: corral deploy check)" if more else ""
    remedy = f"{first.remedy} Then run it again; or to go on all the same: --skip-check {first.check}."
    return Refusal(f"{first.check}: {first.message}{others}", remedy)
