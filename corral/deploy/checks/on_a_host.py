"""What one host has, against what its roles and its kind of machine need."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from corral.deploy.checks.facts import Facts
from corral.deploy.checks.findings import Finding, Reporter
from corral.deploy.checks.ours import is_node, made_by_up
from corral.deploy.hosts.reader import CONTROL_PLANE, Host
from corral.kernel.units import counted, format_memory, parse_cpu, parse_memory

TRIED: Final = {"debian": (12,)}
"""Distributions and their least versions on which the parts of a cluster were installed."""
LEAST_KERNEL: Final = (4, 19)
ARCHITECTURES: Final = ("x86_64", "aarch64")
CONTROLLERS: Final = ("cpu", "cpuset", "memory", "pids")
TOOLS: Final = ("conntrack", "iptables", "ethtool", "socat")
"""Programs that kubeadm and the kubelet call."""
_GIBI: Final = 1024**3
_LEAST_PLANE_CPUS: Final = 2
_LEAST_PLANE_MEMORY: Final = 1700 * 1000**2
"""kubeadm refuses a control plane with less of either."""
_MEMORY_SHARE: Final = 0.93
"""The share of a machine's memory that Linux must show at least: firmware and kernel keep the rest."""
_FREE_NEEDED, _FREE_WANTED = 5 * _GIBI, 20 * _GIBI
_SKEW_FAILS, _SKEW_WARNS = 2.0, 0.5
"""Seconds that a clock may be off."""


def findings_on(host: Host, facts: Facts, *, clock_offset: float) -> Iterator[Finding]:
    """All findings of one host; `clock_offset` is how far its clock is off, in seconds."""
    tell = Reporter(host.name)
    yield tell.ok("ssh", f"reached as {facts.user} at {facts.reached or host.address}")
    yield from _clock(tell, facts, clock_offset)
    for rule in _RULES:
        yield from rule(tell, host, facts)


def _sudo(tell: Reporter, host: Host, facts: Facts) -> Iterator[Finding]:
    if facts.sudo in ("root", "free"):
        yield tell.ok("sudo", "signs in as root" if facts.sudo == "root" else "sudo asks for no password")
    elif facts.sudo == "missing":
        yield tell.fail("sudo", "sudo is not installed", "Install sudo, or let root sign in with the key.")
    else:
        yield tell.fail(
            "sudo",
            f"sudo asks {facts.user} for a password, or refuses",
            f"As root: visudo -f /etc/sudoers.d/corral, with the line: {facts.user} ALL=(ALL) NOPASSWD: ALL",
        )


def _system(tell: Reporter, host: Host, facts: Facts) -> Iterator[Finding]:
    name = facts.os_name or facts.os or "an unknown system"
    least = TRIED.get(facts.os)
    if "systemctl" not in facts.tools:
        yield tell.fail("os", f"{name} has no systemd", "Install a system with systemd, such as Debian 12.")
    elif facts.arch not in ARCHITECTURES:
        yield tell.fail("os", f"{name} runs on {facts.arch}", f"Use machines of {' or '.join(ARCHITECTURES)}.")
    elif least is None or _version(facts.os_version) < least:
        yield tell.warn("os", f"{name} was not tried", "Debian 12 was; others with systemd may do.")
    else:
        yield tell.ok("os", f"{name}, {facts.arch}")
    if _version(facts.kernel) < LEAST_KERNEL:
        least_text = ".".join(map(str, LEAST_KERNEL))
        yield tell.fail(
            "kernel", f"its Linux {facts.kernel} is too old", f"Install Linux {least_text} or later and restart."
        )
    else:
        yield tell.ok("kernel", f"Linux {facts.kernel}")


def _cgroups(tell: Reporter, host: Host, facts: Facts) -> Iterator[Finding]:
    if not host.in_kubernetes:
        return
    missing = [each for each in CONTROLLERS if each not in facts.controllers]
    if missing:
        yield tell.fail(
            "cgroups",
            f"the control groups {', '.join(missing)} are off",
            "Remove cgroup_disable from the kernel's command line and restart.",
        )
    elif facts.cgroup == 1:
        remedy = "Kubernetes 1.34 runs on it and 1.35 does not: boot with systemd.unified_cgroup_hierarchy=1."
        yield tell.warn("cgroups", "control groups are of version 1", remedy)
    else:
        yield tell.ok("cgroups", "version 2")


def _swap(tell: Reporter, host: Host, facts: Facts) -> Iterator[Finding]:
    if not host.in_kubernetes:
        return
    if facts.swaps:
        areas = ", ".join(f"{each.name} ({_gibi(each.size)})" for each in facts.swaps)
        remedy = "As root: swapoff -a, and remove the swap lines from /etc/fstab."
        yield tell.fail("swap", f"swap is on: {areas}", remedy)
    else:
        yield tell.ok("swap", "off")


def _clock(tell: Reporter, facts: Facts, offset: float) -> Iterator[Finding]:
    remedy = "As root: install chrony (or enable systemd-timesyncd) and let it set the clock."
    if abs(offset) >= _SKEW_WARNS:
        message = f"the clock is {abs(offset):.1f} s {'ahead' if offset > 0 else 'behind'} of this machine's"
        yield (tell.fail if abs(offset) >= _SKEW_FAILS else tell.warn)("clock", message, remedy)
    else:
        yield tell.ok("clock", "agrees with this machine's")
    if facts.ntp == "yes":
        yield tell.ok("ntp", "synchronized")
    else:
        message = (
            "the clock is not synchronized" if facts.ntp == "no" else "nothing tells whether the clock is synchronized"
        )
        yield tell.warn("ntp", message, remedy)


def _processors(tell: Reporter, host: Host, facts: Facts) -> Iterator[Finding]:
    needed = parse_cpu(host.sku.cpu) if host.sku is not None and host.sku.cpu else 0
    if facts.cpus * 1000 < needed:
        message = (
            f"{counted(facts.cpus, 'processor')} instead of the {host.sku.cpu if host.sku else ''} of {host.sku_name}"
        )
        yield tell.fail(
            "cpu", message, "Correct the kind in the list, or look why Linux does not see them all (lscpu)."
        )
    elif CONTROL_PLANE in host.roles and facts.cpus < _LEAST_PLANE_CPUS:
        message = f"{counted(facts.cpus, 'processor')}; kubeadm needs {_LEAST_PLANE_CPUS} for a control plane"
        yield tell.fail("cpu", message, "Choose another host for the control plane.")
    else:
        yield tell.ok("cpu", counted(facts.cpus, "processor"))
    wanted = parse_memory(host.sku.memory) if host.sku is not None and host.sku.memory else 0
    if facts.memory < wanted * _MEMORY_SHARE:
        message = (
            f"{_gibi(facts.memory)} of memory instead of the {host.sku.memory if host.sku else ''} of {host.sku_name}"
        )
        yield tell.fail(
            "memory", message, "Correct the kind in the list, or look for a broken module (dmidecode -t memory)."
        )
    elif CONTROL_PLANE in host.roles and facts.memory < _LEAST_PLANE_MEMORY:
        message = f"{_gibi(facts.memory)} of memory; kubeadm needs 1.6 GiB for a control plane"
        yield tell.fail("memory", message, "Choose another host for the control plane.")
    else:
        yield tell.ok("memory", _gibi(facts.memory))


def _disks(tell: Reporter, host: Host, facts: Facts) -> Iterator[Finding]:
    folders = ["/var/lib"] if host.in_kubernetes else []
    folders += [host.data_folder] if host.data_folder else []
    for folder in folders or ["/"]:
        inside = [each for each in facts.mounts if _is_below(folder, each.path)]
        if not inside:
            yield tell.warn("disk", f"nothing tells how much is free in {folder}", "Look by hand: df -h.")
            continue
        mount = max(inside, key=lambda each: len(each.path))
        message = f"{_gibi(mount.free)} of {_gibi(mount.size)} are free for {folder}"
        remedy = f"Make room on {mount.path}, or mount a larger disk at {folder}."
        if mount.free < _FREE_NEEDED:
            yield tell.fail("disk", message, remedy)
        elif mount.free < _FREE_WANTED:
            yield tell.warn("disk", message, remedy)
        else:
            yield tell.ok("disk", message)


def _devices(tell: Reporter, host: Host, facts: Facts) -> Iterator[Finding]:
    expected = host.sku.devices if host.sku is not None else None
    for vendor in sorted({*facts.cards, *facts.usable, *([expected.vendor] if expected else ())}):
        present = max(facts.cards.get(vendor, 0), facts.usable.get(vendor, 0))
        needed = expected.count if expected is not None and expected.vendor == vendor else 0
        message = f"{counted(present, f'{vendor} device')}"
        if present < needed:
            remedy = "Look whether it is seated and powered (lspci); or correct the kind in the list."
            yield tell.fail("devices", f"{message} instead of the {needed} of {host.sku_name}", remedy)
        elif present > needed:
            kind = f"its kind {host.sku_name} has {needed}" if host.sku_name else "the list gives it no kind"
            yield tell.warn("devices", f"{message}, and {kind}", "Correct the kind in the list.")
        else:
            yield tell.ok("devices", message)
        if not present:
            continue
        if vendor not in facts.drivers:
            yield tell.fail(
                "driver", f"the driver of {vendor} is not loaded", f"Install the driver of {vendor} and restart."
            )
        elif facts.usable.get(vendor, 0) < present:
            message = f"the driver {facts.drivers[vendor]} has {facts.usable.get(vendor, 0)} of {present} devices"
            yield tell.fail(
                "driver", message, "Read the kernel's log (dmesg), and restart the machine or replace the card."
            )
        else:
            yield tell.ok("driver", f"{vendor} {facts.drivers[vendor]}")


def _runtime(tell: Reporter, host: Host, facts: Facts) -> Iterator[Finding]:
    if not host.in_kubernetes:
        return
    if "containerd" in facts.tools:
        yield tell.ok("runtime", "containerd is there")
    elif facts.tools & {"crio", "dockerd"}:
        found = ", ".join(sorted(facts.tools & {"crio", "dockerd"}))
        yield tell.warn("runtime", f"{found} is there, containerd is not", "containerd is to be installed beside it.")
    else:
        yield tell.warn("runtime", "there is no container runtime", "containerd is to be installed.")
    missing = [tool for tool in TOOLS if tool not in facts.tools]
    if missing:
        yield tell.warn("tools", f"{', '.join(missing)} are missing", f"Install them: {' '.join(missing)}.")
    else:
        yield tell.ok("tools", ", ".join(TOOLS))
    lost = [name for name, state in facts.modules.items() if state == "missing"]
    if lost:
        yield tell.fail(
            "modules", f"the kernel has no module {', '.join(lost)}", "Install the kernel's modules and restart."
        )


def _network(tell: Reporter, host: Host, facts: Facts) -> Iterator[Finding]:
    if not facts.nameservers:
        yield tell.fail("dns", "/etc/resolv.conf names no server", "Set a name server there.")
    elif not facts.resolves:
        remedy = f"Add a line with its address and {facts.hostname} to /etc/hosts."
        yield tell.warn("dns", f"it finds no address for its own name {facts.hostname}", remedy)
    else:
        yield tell.ok("dns", ", ".join(facts.nameservers))
    own = {each.address for each in facts.addresses}
    if host.internal_address and own and host.internal_address not in own:
        remedy = "Correct internalAddress in the list, or set the address up there."
        yield tell.fail("addresses", f"it does not have the address {host.internal_address}", remedy)
    broken = [name for name, state in facts.rdma if "ACTIVE" not in state]
    if broken:
        remedy = "Look at its cable and switch (ibstat, rdma link)."
        yield tell.warn("rdma", f"not active: {', '.join(sorted(set(broken)))}", remedy)
    elif facts.rdma:
        yield tell.ok("rdma", f"{counted(len(facts.rdma), 'port')} active")
    for name in ("firewalld", "ufw"):
        if name in facts.services and facts.services[name].running == "active":
            yield tell.warn("firewall", f"{name} is active", "Open the ports of docs/deploy.md to the other hosts.")


def _remains(tell: Reporter, host: Host, facts: Facts) -> Iterator[Finding]:
    if not host.in_kubernetes or not facts.leftovers:
        return
    if made_by_up(facts):
        yield tell.ok("remains", "up made it a node" if is_node(facts) else "up began to make it a node")
    else:
        message = f"remains of another cluster: {', '.join(facts.leftovers[:4])}"
        yield tell.fail(
            "remains", message, "As root: kubeadm reset (or that cluster's own removal), if it is not needed."
        )


_RULES: Final[tuple[Callable[[Reporter, Host, Facts], Iterator[Finding]], ...]] = (
    _sudo, _system, _cgroups, _swap, _processors, _disks, _devices, _runtime, _network, _remains,
)  # fmt: skip


def _version(text: str) -> tuple[int, ...]:
    """The first two numbers of a version."""
    return tuple(int(number) for number in re.findall(r"\d{1,6}", text)[:2]) or (0,)


def _is_below(folder: str, mount: str) -> bool:
    return mount == "/" or folder == mount or folder.startswith(mount.rstrip("/") + "/")


def _gibi(size: int) -> str:
    """A size as people read it, with one decimal."""
    return format_memory(size) if size % _GIBI == 0 else f"{size / _GIBI:.1f}Gi"
