"""Adding a node to a cluster and removing one: what is to be done, and what a failure says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from corral.deploy.checks.connection import Refusal
from corral.deploy.checks.facts import Facts
from corral.deploy.checks.ours import REGISTRY_UNIT_FILE, has_hadoop
from corral.deploy.steps.kubeadm import CLOSED
from corral.deploy.steps.leaving import LEAVE
from corral.deploy.steps.outcome import last_error
from corral.deploy.steps.step import HostPlan

VALIDATE, MEASURE, OPEN = "validate it by a pod", "validate it by Corral", "offer it to the scheduler"
"""What follows the steps of a host that is added."""
EMPTY, RESET, FORGET = "drain it", "take back what up made", "take it out of Kubernetes"
"""What is done of a host that is removed, in order."""
_MOST_NODES: Final = 20_000
_BEGIN, _END = "corral-nodes begin 2", "corral-nodes end 2"
_BARE: Final = re.compile(
    r"declare no controller \(use --force to override\): ([^\n]{1,400}?)(?:, continuing command\.\.\.)?$", re.MULTILINE
)
_VERSION: Final = re.compile(r"v[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}[A-Za-z0-9.+-]{0,60}")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,252}")
State = Literal["added", "removed", "upgraded", "failed", "left out", "not reached"]
_INVALID: Final = {
    "corral: no way to the DNS": (
        "a pod on it does not reach the DNS of the cluster",
        "Open UDP port 8472 (the pods' network) between it and the others, then run it again.",
    ),
    "corral: no pod starts": ("no pod starts on it", "Read its log and journalctl -u kubelet, then run it again."),
    "corral: no logs": (
        "the logs of its pods cannot be read from the control plane",
        "Open TCP port 10250 to the control plane, then run it again.",
    ),
}


@dataclass(frozen=True, slots=True)
class Node:
    """A node as Kubernetes has it."""

    name: str
    cordoned: bool
    taints: frozenset[str]
    ready: bool
    version: str = ""
    """That of its kubelet."""
    noted: bool = False
    """Whether an upgrade has closed it and not opened it again."""

    @property
    def closed(self) -> bool:
        """Whether it waits for its validation."""
        return CLOSED in self.taints


@dataclass(frozen=True, slots=True)
class Change:
    """What came of one host that was to be added or removed."""

    name: str
    state: State
    done: tuple[str, ...] = ()
    refusal: Refusal | None = None

    def to_document(self) -> dict[str, Any]:
        """The change for programs."""
        why = {"message": self.refusal.message, "remedy": self.refusal.remedy} if self.refusal else {}
        return {"name": self.name, "state": self.state, "done": list(self.done), **why}


class GarbledNodes(ValueError):
    """What a control plane printed is no list of nodes."""


def parse_nodes(text: str) -> dict[str, Node]:
    """The nodes of a cluster, by name, from what `list_nodes` printed. Raises GarbledNodes."""
    lines = text.split("\n", _MOST_NODES + 3)
    if _BEGIN not in lines or _END not in lines:
        raise GarbledNodes("its first or last line is missing")
    found: dict[str, Node] = {}
    for line in lines[lines.index(_BEGIN) + 1 : lines.index(_END)]:
        fields = line.split("\t")
        if len(fields) != 6 or not _NAME.fullmatch(fields[0]):
            raise GarbledNodes("a line of it is no node")
        name, cordoned, taints, ready, version, noted = fields
        found[name] = Node(
            name, cordoned == "true", frozenset(taints.split()), ready == "True",
            version if _VERSION.fullmatch(version) else "", bool(noted),
        )  # fmt: skip
    return found


def closed_joining(plan: HostPlan) -> HostPlan:
    """The same plan, by which the host joins as a node that takes no tasks yet."""
    steps = tuple(
        replace(step, joining=replace(step.joining, closed=True)) if step.joining is not None else step
        for step in plan.steps
    )
    return replace(plan, steps=steps)


def steps_of_removal(
    name: str, nodes: Mapping[str, Node], *, stands: bool, lost: bool, leaves: bool = False
) -> tuple[str, ...]:  # fmt: skip
    """What is to be done to remove a host. `stands`: something of `up` is on it. `lost`: nobody can know.

    `leaves`: it is a worker of Hadoop.
    """
    there = name in nodes
    if lost:
        return (*((LEAVE,) if leaves else ()), *((FORGET,) if there else ()))
    emptied = (*((EMPTY,) if there else ()), *((LEAVE,) if leaves else ()), RESET) if stands else ()
    return (*emptied, *((FORGET,) if there else ()))


def refusal_of_removal(name: str, own: Facts, *, lost: bool, leaves: bool = False) -> Refusal | None:
    """Why a host that answers is not taken out of the cluster; None where it may be. `leaves` as above."""
    if lost:
        return Refusal("it answers, so it is not lost", "Leave out --lost.")
    if has_hadoop(own) and not leaves:
        return Refusal(
            "it has a part of Hadoop that the list does not give it, whose data would go with the node",
            "Make it a worker of Hadoop in the list; or, once HDFS has its blocks elsewhere: "
            f"corral deploy reset --host {name}.",
        )
    if REGISTRY_UNIT_FILE in own.files:
        return Refusal(
            "it has the registry of the cluster, which the others ask",
            f"Name another host at registry in the list and run up; then: corral deploy reset --host {name}.",
        )
    return None


def refusal_of_validation(output: str, state: str = "has joined and is not offered") -> Refusal:
    """Why a node is not validated, from what was printed; `state` says how it is meanwhile."""
    for mark, (says, remedy) in _INVALID.items():
        if mark in output.splitlines():
            return Refusal(f"it {state}: {says}", remedy)
    return Refusal(f"it {state}: {last_error(output)}", "Read its log, then run it again.")


def refusal_of_drain(name: str, output: str, seconds: int) -> Refusal:
    """Why a node is not empty, from what kubectl printed."""
    if found := _BARE.search(output):
        pods = found[1].split(", ")
        shown = ", ".join(pods[:3]) + (f" and {len(pods) - 3} more" if len(pods) > 3 else "")
        return Refusal(
            f"tasks run on it that nobody would start again: {shown}",
            f"It takes no new ones. Move them (corral drain kubernetes/{name}), then run it again; or: --end-tasks.",
        )
    if "global timeout reached" in output:
        return Refusal(
            f"its pods did not end within {seconds} s",
            f"See kubectl get pods -A --field-selector spec.nodeName={name}.",
        )
    return Refusal(f"it could not be drained: {last_error(output)}", "Read its log, then run it again.")
