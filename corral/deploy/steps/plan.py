"""The plan of a cluster: each step on each host, as a function of the list of hosts and of their facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from corral.deploy.checks.facts import Facts
from corral.deploy.checks.on_a_host import in_kubernetes
from corral.deploy.checks.report import Survey
from corral.deploy.hosts.reader import CONTROL_PLANE, Host, Hosts
from corral.deploy.steps import files
from corral.deploy.steps.bundle import PROGRAMS, Bundle
from corral.deploy.steps.node import ADMIN, KUBELET, node_steps
from corral.deploy.steps.step import HostPlan, Step

PACKAGES: Final = ("conntrack", "ethtool", "iptables", "kmod", "socat")
INSTALL: Final = "install_packages"
"""The function of `do.sh` that installs packages."""
_FSTAB: Final = "/etc/fstab"
_UNPLANNED: Final = ("storage", "hadoop")
"""Roles whose own steps are not planned yet."""


def plan_of(hosts: Hosts, survey: Survey, bundle: Bundle | None = None) -> tuple[HostPlan, ...]:
    """The plan of every host of the list, in its order; programs and images are those of the bundle."""
    facts = {name: seen.facts for name, seen in survey.seen.items()}
    first = _first_plane(hosts, facts)
    return tuple(_host_plan(hosts, host, first, facts, survey, bundle) for host in hosts.hosts)


def _first_plane(hosts: Hosts, facts: Mapping[str, Facts]) -> str:
    """The host where the cluster begins: one that is a control plane already, else the first of the list."""
    planes = [host.name for host in hosts.hosts if CONTROL_PLANE in host.roles]
    there = [name for name in planes if name in facts and ADMIN in facts[name].leftovers]
    return next(iter([*there, *planes]), "")


def _host_plan(
    hosts: Hosts, host: Host, first: str, facts: Mapping[str, Facts], survey: Survey, bundle: Bundle | None
) -> HostPlan:
    notes = tuple(f"Steps for the role {role} are not planned yet." for role in host.roles if role in _UNPLANNED)
    if host.name not in facts:
        refusal = survey.refusals.get(host.name)
        bars: tuple[str, ...] = (refusal.message if refusal else "it was not looked at",)
        return HostPlan(host.name, host.roles, (), bars, notes, bars)
    own = facts[host.name]
    bars = tuple(_bars(hosts, host, own, bundle))
    obstacles = (*bars, *_obstacles_between(hosts, host, first, facts))
    if not in_kubernetes(host):
        return HostPlan(host.name, host.roles, (), obstacles, notes, bars)
    steps = (*_system(own), *node_steps(hosts, host, first, facts, bundle))
    return HostPlan(host.name, host.roles, steps, obstacles, notes, bars)


def _bars(hosts: Hosts, host: Host, own: Facts, bundle: Bundle | None) -> Iterator[str]:
    """What on a host itself keeps its steps from being done."""
    if own.sudo not in ("root", "free"):
        yield f"sudo asks {own.user} for a password, or is not there"
    if not in_kubernetes(host):
        return
    if own.manager != "apt-get":
        yield f"packages are planned for apt-get, and it has {own.manager or 'no package manager'}"
    if "systemctl" not in own.tools:
        yield "it has no systemd"
    if len(own.files.get(_FSTAB, b"")) >= files.MOST_READ:
        yield f"its {_FSTAB} is too long to be changed: make it shorter than {files.MOST_READ} bytes"
    if bundle is not None:
        yield from _unfit(hosts, own, bundle)


def _unfit(hosts: Hosts, own: Facts, bundle: Bundle) -> Iterator[str]:
    """Why the programs of a bundle cannot be those of a host."""
    if own.arch != bundle.arch:
        yield f"the bundle is for {bundle.arch}, and it is {own.arch}"
    wanted = f"v{hosts.kubernetes.version}"
    for name in ("kubeadm", "kubelet"):
        there = own.versions.get(name, "")
        from_bundle = own.programs.get(f"{PROGRAMS}/{name}") == bundle.digest_of(name)
        if from_bundle and there not in ("", wanted):
            yield f"the bundle has {name} {there}, and the list asks for {wanted}"
        if KUBELET in own.leftovers and not from_bundle and there not in ("", wanted):
            yield f"it is a node with {name} {there}, and up does not upgrade nodes to {wanted}"


def _obstacles_between(hosts: Hosts, host: Host, first: str, facts: Mapping[str, Facts]) -> Iterator[str]:
    """What at other hosts, or in the list, keeps a host from joining the cluster."""
    if not in_kubernetes(host):
        return
    if first not in facts:
        yield f"the control plane {first} was not reached"
    planes = sum(CONTROL_PLANE in each.roles for each in hosts.hosts)
    if planes > 1 and not hosts.kubernetes.endpoint and CONTROL_PLANE in host.roles:
        yield f"{planes} control planes need kubernetes.endpoint in the list, an address that reaches any of them"


def _system(own: Facts) -> Iterator[Step]:
    missing = [name for name in PACKAGES if name not in own.packages]
    title = f"install {', '.join(missing)}" if missing else "all packages are installed"
    yield Step("package", title, bool(missing), call=(INSTALL, *missing))
    if own.swaps:
        yield Step("swap", f"turn off {', '.join(area.name for area in own.swaps)}", call=("turn_off_swap",))
    fstab = own.files.get(_FSTAB, b"").decode(errors="surrogateescape")
    if files.without_swap(fstab) != fstab:
        yield files.file_step(own, _FSTAB, files.without_swap(fstab), done=True)
    yield files.file_step(own, files.MODULES_FILE, files.modules_text(), done=True)
    unloaded = [name for name in files.MODULES if own.modules.get(name) != "loaded"]
    title = f"load {', '.join(unloaded)}" if unloaded else "all modules are loaded"
    yield Step("module", title, bool(unloaded), call=("load_modules", *unloaded))
    yield files.file_step(own, files.SYSCTLS_FILE, files.sysctls_text(), done=True)
    # Where br_netfilter is not loaded yet, its settings are not there either, and loading it brings them.
    other = files.differing(files.SYSCTLS, own)
    settings = ", ".join(f"{name} = {files.SYSCTLS[name]}" for name in other)
    title = f"set {settings}" if other else "all settings of the kernel are as wanted"
    yield Step(
        "sysctl", title, bool(other),
        call=("set_kernel", *(f"{files.sysctl_name(name)}={files.SYSCTLS[name]}" for name in other)),
    )  # fmt: skip
