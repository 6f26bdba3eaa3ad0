"""The plan of a cluster: each step on each host, as a function of the list of hosts and of their facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from corral.deploy.checks.between_hosts import cluster_address
from corral.deploy.checks.facts import Facts
from corral.deploy.checks.on_a_host import in_kubernetes
from corral.deploy.checks.report import Survey
from corral.deploy.hosts.reader import CONTROL_PLANE, Host, Hosts
from corral.deploy.steps import files, kubeadm
from corral.deploy.steps.step import HostPlan, Step

PACKAGES: Final = ("conntrack", "ethtool", "iptables", "kmod", "socat")
INSTALL: Final = "install_packages"
"""The function of `do.sh` that installs packages."""
CONTAINERD_VERSION: Final = "2.1"
"""The least version of containerd: older ones hand devices of claims to no container."""
_FSTAB: Final = "/etc/fstab"
_ADMIN, _KUBELET = "/etc/kubernetes/admin.conf", "/etc/kubernetes/kubelet.conf"
_UNPLANNED: Final = ("storage", "hadoop")
"""Roles whose own steps are not planned yet."""


def plan_of(hosts: Hosts, survey: Survey) -> tuple[HostPlan, ...]:
    """The plan of every host of the list, in its order."""
    facts = {name: seen.facts for name, seen in survey.seen.items()}
    first = _first_plane(hosts, facts)
    return tuple(_host_plan(hosts, host, first, facts, survey) for host in hosts.hosts)


def _first_plane(hosts: Hosts, facts: Mapping[str, Facts]) -> str:
    """The host where the cluster begins: one that is a control plane already, else the first of the list."""
    planes = [host.name for host in hosts.hosts if CONTROL_PLANE in host.roles]
    there = [name for name in planes if name in facts and _ADMIN in facts[name].leftovers]
    return next(iter([*there, *planes]), "")


def _host_plan(
    hosts: Hosts, host: Host, first: str, facts: Mapping[str, Facts], survey: Survey
) -> HostPlan:  # fmt: skip
    notes = tuple(f"Steps for the role {role} are not planned yet." for role in host.roles if role in _UNPLANNED)
    if host.name not in facts:
        refusal = survey.refusals.get(host.name)
        bars: tuple[str, ...] = (refusal.message if refusal else "it was not looked at",)
        return HostPlan(host.name, host.roles, (), bars, notes, bars)
    own = facts[host.name]
    bars = tuple(_bars(host, own))
    obstacles = (*bars, *_obstacles_between(hosts, host, first, facts))
    if not in_kubernetes(host):
        return HostPlan(host.name, host.roles, (), obstacles, notes, bars)
    steps = (*_system(own), *_programs(hosts, own), *_join(hosts, host, first, own))
    return HostPlan(host.name, host.roles, steps, obstacles, notes, bars)


def _bars(host: Host, own: Facts) -> Iterator[str]:
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


def _programs(hosts: Hosts, own: Facts) -> Iterator[Step]:
    version = f"v{hosts.kubernetes.version}"
    runtime = own.versions.get("containerd", "").removeprefix("v")
    recent = _numbers(runtime) >= _numbers(CONTAINERD_VERSION)
    title = (
        f"containerd {runtime} is installed"
        if recent
        else f"install containerd {CONTAINERD_VERSION}, runc and CNI plugins"
    )
    yield Step("program", title if recent or not runtime else f"{title} in place of {runtime}", not recent)
    for name in ("kubeadm", "kubelet"):
        there = own.versions.get(name, "")
        title = f"{name} {version} is installed" if there == version else f"install {name} {version}"
        yield Step("program", f"{title} in place of {there}" if there not in ("", version) else title, there != version)
    changed = [
        files.file_step(own, files.CONTAINERD_FILE, files.CONTAINERD),
        files.file_step(own, "/etc/systemd/system/containerd.service", files.CONTAINERD_UNIT),
    ]
    yield from changed
    yield _service(own, "containerd", restart=not recent or any(step.needed for step in changed))
    unit = files.file_step(own, "/etc/systemd/system/kubelet.service", files.KUBELET_UNIT)
    yield unit
    stale = own.versions.get("kubelet", "") != version
    if _KUBELET in own.leftovers:
        yield _service(own, "kubelet", restart=stale or unit.needed)
    else:  # kubeadm starts it, once it has a configuration
        enabled = "kubelet" in own.services and own.services["kubelet"].starts == "enabled"
        yield Step("service", "kubelet is enabled" if enabled else "enable kubelet", not enabled)


def _service(own: Facts, name: str, *, restart: bool) -> Step:
    known = own.services.get(name)
    starts = known is not None and known.starts == "enabled"
    runs = known is not None and known.running == "active"
    if starts and runs and not restart:
        return Step("service", f"{name} is enabled and runs", False)
    verbs = [*(() if starts else ("enable",)), *(("restart",) if runs and restart else () if runs else ("start",))]
    return Step("service", f"{' and '.join(verbs)} {name}")


def _join(hosts: Hosts, host: Host, first: str, own: Facts) -> Iterator[Step]:
    if host.name == first:
        text = files.kubeadm_text(hosts, host, cluster_address(host, own))
        yield files.file_step(own, files.KUBEADM_FILE, text)
        if _ADMIN in own.leftovers:
            yield Step("kubeadm", "the control plane is there", False)
        else:
            yield Step("kubeadm", f"init --config {files.KUBEADM_FILE} --upload-certs", True, kubeadm.INIT)
        there = any(path.startswith("/etc/cni/net.d/") for path in own.leftovers)
        yield Step(
            "chart", "the pods' network (flannel) is there" if there else "apply the pods' network (flannel)", not there
        )
        yield Step("chart", f"install Corral with PostgreSQL in the cluster {hosts.cluster}, or bring it up to date")
    elif _KUBELET in own.leftovers:
        yield Step("kubeadm", "it is a node already", False)
    elif CONTROL_PLANE in host.roles:
        yield Step("kubeadm", f"join {first} as a control plane", True, kubeadm.JOIN_CONTROL_PLANE)
    else:
        yield Step("kubeadm", f"join {first} as a worker", True, kubeadm.JOIN)


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split("~")[0].split("-")[0].split("+")[0].split(".")[:2]
    return tuple(int(part) for part in parts if part.isascii() and part.isdecimal() and len(part) < 9)
