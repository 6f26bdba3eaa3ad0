"""The plan of a cluster: each step on each host, as a function of the list of hosts and of their facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from corral.deploy.checks.components import control_planes
from corral.deploy.checks.facts import Facts
from corral.deploy.checks.ours import KUBELET
from corral.deploy.checks.report import Survey
from corral.deploy.hosts.reader import CONTROL_PLANE, HADOOP, Host, Hosts
from corral.deploy.steps import balancer, files, hadoop, registry
from corral.deploy.steps.bundle import PROGRAMS, Bundle
from corral.deploy.steps.installation import installation_of
from corral.deploy.steps.node import node_steps, started, upgrade_steps
from corral.deploy.steps.step import HostPlan, Step

PACKAGES: Final = ("conntrack", "ethtool", "iptables", "kmod", "socat")
INSTALL: Final = "install_packages"
"""The function of `do.sh` that installs packages."""
_FSTAB: Final = "/etc/fstab"


def plan_of(hosts: Hosts, survey: Survey, bundle: Bundle | None = None) -> tuple[HostPlan, ...]:
    """The plan of every host of the list, in its order; programs and images are those of the bundle."""
    facts = {name: seen.facts for name, seen in survey.seen.items()}
    first = first_plane(hosts, facts)
    return tuple(_host_plan(hosts, host, first, facts, survey, bundle) for host in hosts.hosts)


def upgrade_plan_of(hosts: Hosts, survey: Survey, bundle: Bundle) -> tuple[HostPlan, ...]:
    """The plan of the upgrade of every node of the list, in the order in which they are upgraded: control planes first."""
    facts = {name: seen.facts for name, seen in survey.seen.items()}
    first = first_plane(hosts, facts)
    order = sorted(
        (host for host in hosts.hosts if host.in_kubernetes),
        key=lambda host: (host.name != first, CONTROL_PLANE not in host.roles),
    )
    return tuple(_upgrade_plan(hosts, host, first, facts, bundle) for host in order if host.name in facts)


def _upgrade_plan(hosts: Hosts, host: Host, first: str, facts: Mapping[str, Facts], bundle: Bundle) -> HostPlan:
    own = facts[host.name]
    bars = tuple(_bars(hosts, host, own, bundle, upgrade=True))
    steps = (*_packages(hosts, host, own), *_system(own), *upgrade_steps(hosts, host, first, facts, bundle))
    return HostPlan(host.name, host.roles, steps, bars, (), bars)


def first_plane(hosts: Hosts, facts: Mapping[str, Facts]) -> str:
    """The host where the cluster begins: a control plane that is up, else the first of the list.

    Of several that are up it is the one that has what there is once in a cluster.
    """
    planes = [host.name for host in control_planes(hosts)]
    there = [name for name in planes if started(facts.get(name))]
    leading = [name for name in there if files.NETWORK_FILE in facts[name].files]
    return next(iter([*leading, *there, *planes]), "")


def _host_plan(
    hosts: Hosts, host: Host, first: str, facts: Mapping[str, Facts], survey: Survey, bundle: Bundle | None
) -> HostPlan:
    notes = tuple(_notes(hosts, host))
    if host.name not in facts:
        refusal = survey.refusals.get(host.name)
        bars: tuple[str, ...] = (refusal.message if refusal else "it was not looked at",)
        return HostPlan(host.name, host.roles, (), bars, notes, bars)
    own = facts[host.name]
    notes = (*notes, *hadoop.notes(hosts, host, facts), *registry.notes(hosts, host, facts))
    asked = installation_of(hosts, first, facts) if host.name == first else None
    lacking = tuple(asked.missing(bundle)) if asked is not None and bundle is not None else ()
    bars = (
        *_bars(hosts, host, own, bundle), *lacking, *_unsafe(hosts, host, first, facts),
        *hadoop.bars(hosts, host, facts, bundle), *registry.bars(hosts, host),
    )  # fmt: skip
    obstacles = (*bars, *_obstacles_between(hosts, host, first, facts))
    packages = _packages(hosts, host, own) if hosts.works_on(host) else ()
    of_kubernetes = (*_system(own), *node_steps(hosts, host, first, facts, bundle)) if host.in_kubernetes else ()
    steps = (*packages, *of_kubernetes, *hadoop.steps(hosts, host, facts, bundle))
    return HostPlan(host.name, host.roles, steps, obstacles, notes, bars)


def _notes(hosts: Hosts, host: Host) -> Iterator[str]:
    if "storage" in host.roles:
        yield "Steps for the role storage are not planned yet."
    if HADOOP in host.roles and hosts.hadoop is None:
        yield "The list has no section hadoop, so nothing is installed for the role hadoop."


def _bars(
    hosts: Hosts, host: Host, own: Facts, bundle: Bundle | None, *, upgrade: bool = False
) -> Iterator[str]:  # fmt: skip
    """What on a host itself keeps its steps from being done."""
    if own.sudo not in ("root", "free"):
        yield f"sudo asks {own.user} for a password, or is not there"
    if not hosts.works_on(host):
        return
    if own.manager != "apt-get":
        yield f"packages are planned for apt-get, and it has {own.manager or 'no package manager'}"
    if "systemctl" not in own.tools:
        yield "it has no systemd"
    if len(own.files.get(_FSTAB, b"")) >= files.MOST_READ:
        yield f"its {_FSTAB} is too long to be changed: make it shorter than {files.MOST_READ} bytes"
    if bundle is not None and host.in_kubernetes:
        yield from _unfit(hosts, own, bundle, upgrade=upgrade)


def _unfit(hosts: Hosts, own: Facts, bundle: Bundle, *, upgrade: bool) -> Iterator[str]:
    """Why the programs of a bundle cannot be those of a host."""
    if not bundle.programs:
        yield "the bundle has Hadoop alone, and it is a node of Kubernetes"
        return
    if own.arch != bundle.arch:
        yield f"the bundle is for {bundle.arch}, and it is {own.arch}"
    wanted = f"v{hosts.kubernetes.version}"
    for name in ("kubeadm", "kubelet"):
        there = own.versions.get(name, "")
        from_bundle = own.programs.get(f"{PROGRAMS}/{name}") == bundle.digest_of(name)
        if from_bundle and there not in ("", wanted):
            yield f"the bundle has {name} {there}, and the list asks for {wanted}"
        if not upgrade and KUBELET in own.leftovers and not from_bundle and there not in ("", wanted):
            yield f"it is a node with {name} {there}, and up does not upgrade nodes to {wanted}: corral deploy upgrade does"


def _obstacles_between(hosts: Hosts, host: Host, first: str, facts: Mapping[str, Facts]) -> Iterator[str]:
    """What at other hosts, or in the list, keeps a host from joining the cluster."""
    if not host.in_kubernetes:
        return
    if first not in facts:
        yield f"the control plane {first} was not reached"


def _unsafe(hosts: Hosts, host: Host, first: str, facts: Mapping[str, Facts]) -> Iterator[str]:
    """Why no control plane may begin here: the cluster takes no more, or another host may have a cluster already."""
    if CONTROL_PLANE in host.roles and not started(facts[host.name]):
        yield from balancer.unjoinable(hosts, first, facts, files.KUBEADM_FILE)
    silent = [each.name for each in control_planes(hosts) if each.name not in facts]
    if host.name == first and silent and not started(facts[first]):
        yield f"{' and '.join(silent)} may have the cluster already, and was not reached"


def packages_of(hosts: Hosts, host: Host) -> tuple[str, ...]:
    """The packages that a host needs."""
    of_nodes = (*PACKAGES, *((balancer.PACKAGE,) if balancer.is_needed(hosts) else ()))
    of_hadoop = hadoop.PACKAGES if hosts.has_hadoop(host) else ()
    of_registry = (registry.PACKAGE,) if registry.runs_on(hosts, host) else ()
    return tuple(dict.fromkeys((*(of_nodes if host.in_kubernetes else ()), *of_hadoop, *of_registry)))


def _packages(hosts: Hosts, host: Host, own: Facts) -> Iterator[Step]:
    missing = [name for name in packages_of(hosts, host) if name not in own.packages]
    title = f"install {', '.join(missing)}" if missing else "all packages are installed"
    yield Step("package", title, bool(missing), call=(INSTALL, *missing))


def _system(own: Facts) -> Iterator[Step]:
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
