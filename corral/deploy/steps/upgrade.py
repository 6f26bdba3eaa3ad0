"""Upgrading a cluster node by node: what stands in the way, and what is still to be done of each node."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from corral.deploy.checks.connection import Refusal
from corral.deploy.hosts.reader import CONTROL_PLANE, Host, Hosts
from corral.deploy.steps.bundle import Bundle
from corral.deploy.steps.membership import Node
from corral.deploy.steps.step import HostPlan

CLOSE, WAIT, DRAIN = "let it take no new pods", "wait for the tasks on it", "drain it"
"""What comes before the steps of a node."""
VALIDATE, RETURN = "validate it by a pod", "let it take pods again"
"""What comes after them."""
_INTERRUPTING: Final = ("install_programs", "restart", "upgrade_node", "install_packages", "turn_off_swap")
"""The functions of `do.sh` that pods of a node may notice."""
_API_SERVER: Final = "kube-apiserver"
_BEGIN, _END = "corral-tasks begin", "corral-tasks end"


def obstacles_to_upgrade(
    hosts: Hosts, bundle: Bundle, plans: Sequence[HostPlan], nodes: Mapping[str, Node], chosen: Collection[str]
) -> dict[str, Refusal]:  # fmt: skip
    """Why the hosts of the plans cannot be upgraded, by name; those of `chosen` are to be."""
    found: dict[str, Refusal] = {}
    wanted = f"v{hosts.kubernetes.version}"
    there = _versions_of(bundle)
    for plan in plans:
        if plan.name not in chosen:
            continue
        host, node = hosts.named(plan.name), nodes.get(plan.name)
        assert host is not None
        reasons = [*_of_bundle(there, wanted), *_of_node(host, node, wanted)]
        if CONTROL_PLANE not in host.roles:
            reasons += _of_planes(hosts, nodes, chosen, wanted)
        reasons += [Refusal(bar, "Mend it (corral deploy check), then run it again.") for bar in plan.bars]
        if reasons:
            found[plan.name] = reasons[0]
    return found


def _versions_of(bundle: Bundle) -> list[str]:
    """The versions of Kubernetes that the images of a bundle are for."""
    names = (name.rpartition("/")[2].partition(":") for name in bundle.images)
    return sorted(tag for name, _, tag in names if name == _API_SERVER)


def _of_bundle(there: Sequence[str], wanted: str) -> Iterator[Refusal]:
    if wanted not in there:
        has = f"has {_API_SERVER} {' and '.join(there)}" if there else f"has no {_API_SERVER}"
        yield Refusal(
            f"the bundle {has}, and the list asks for {wanted}",
            "Name a bundle of that version (--bundle), or correct kubernetes.version in the list.",
        )


def _of_node(host: Host, node: Node | None, wanted: str) -> Iterator[Refusal]:
    if node is None:
        yield Refusal("it is not a node of the cluster", f"Join it first: corral deploy add-node {host.name}.")
        return
    if node.closed:
        yield Refusal("it is not validated yet", f"Validate it first: corral deploy add-node {host.name}.")
    if not node.ready and not node.noted:
        yield Refusal("it is not ready", "See why (corral deploy status), then run it again.")
    yield from _of_versions(host, node.version, wanted)


def _of_versions(host: Host, there: str, wanted: str) -> Iterator[Refusal]:
    """kubeadm goes from one minor version to the next; kubelets may be three minor versions older than the API."""
    now, then = _numbers(there), _numbers(wanted)
    if now is None or then is None:
        yield Refusal("its kubelet tells no version", "See why (corral deploy status), then run it again.")
    elif now > then:
        yield Refusal(
            f"it runs {there}, and the list asks for the older {wanted}",
            "Kubernetes is never taken back: correct kubernetes.version in the list.",
        )
    elif now[0] != then[0] or then[1] - now[1] > (1 if CONTROL_PLANE in host.roles else 3):
        yield Refusal(
            f"it runs {there}, and {wanted} is too far from it",
            f"Upgrade to {now[0]}.{now[1] + 1} first: one minor version at a time.",
        )


def _of_planes(hosts: Hosts, nodes: Mapping[str, Node], chosen: Collection[str], wanted: str) -> Iterator[Refusal]:
    """A worker follows the control planes."""
    for host in hosts.hosts:
        node = nodes.get(host.name)
        if CONTROL_PLANE in host.roles and host.name not in chosen and (node is None or node.version != wanted):
            yield Refusal(f"the control plane {host.name} is not upgraded yet", f"Upgrade {host.name} first.")
            return


def steps_of_upgrade(plan: HostPlan, node: Node, wanted: str) -> tuple[str, ...]:
    """The titles of what is still to be done of a node, in order; none where it is upgraded."""
    if not plan.doable and node.version == wanted and not node.noted:
        return ()
    images, rest = images_of(plan), rest_of(plan)
    interrupts = any(step.call[0] in _INTERRUPTING for step in rest.doable)
    before = (CLOSE, WAIT, DRAIN) if interrupts else ()
    after = (VALIDATE, RETURN) if interrupts or node.noted or node.version != wanted else ()
    return (*(step.title for step in images.doable), *before, *(step.title for step in rest.doable), *after)


def images_of(plan: HostPlan) -> HostPlan:
    """The images of a plan alone. All nodes have them before the first one is upgraded.

    kubeadm then lets the pods of the system take the new image on every node at once, and no registry may have it.
    """
    return replace(plan, steps=tuple(step for step in plan.steps if step.kind == "image"))


def rest_of(plan: HostPlan) -> HostPlan:
    """The steps of a plan that follow the images."""
    return replace(plan, steps=tuple(step for step in plan.steps if step.kind != "image"))


def parse_tasks(text: str) -> list[str] | None:
    """The pods that a node is waited for, from what `wait_for_tasks` printed; None where that is garbled."""
    lines = text.split("\n", 20_000)
    if _BEGIN not in lines or _END not in lines:
        return None
    return [line.strip() for line in lines[lines.index(_BEGIN) + 1 : lines.index(_END)] if line.strip()]


def named(tasks: Sequence[str]) -> str:
    """Some of the tasks in words."""
    shown = ["".join(char for char in each if char.isprintable())[:200] for each in tasks[:3]]
    return ", ".join(shown) + (f" and {len(tasks) - 3} more" if len(tasks) > 3 else "")


def _numbers(version: str) -> tuple[int, int, int] | None:
    parts = version.removeprefix("v").partition("-")[0].partition("+")[0].split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdecimal() and len(part) < 6 for part in parts):
        return None
    return int(parts[0]), int(parts[1]), int(parts[2])
