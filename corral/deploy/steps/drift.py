"""Drift: what stands on the hosts against what the list describes, as a function of what was found."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from corral.deploy.checks.components import SOON, Certificate
from corral.deploy.checks.facts import Facts
from corral.deploy.checks.ours import made_by_up
from corral.deploy.checks.report import Survey
from corral.deploy.hosts.reader import Hosts
from corral.deploy.steps.bundle import Bundle
from corral.deploy.steps.files import MODULES, MOST_READ, SYSCTLS, sysctl_name
from corral.deploy.steps.flannel import CNI_FILE
from corral.deploy.steps.membership import Node
from corral.deploy.steps.node import OF_KUBEADM
from corral.deploy.steps.plan import plan_of
from corral.deploy.steps.registry import AUTHORITY_FILE, repository_of
from corral.deploy.steps.step import Step

ABSENT: Final = "absent"
_RUNS: Final = "enabled, active"
_SHORT: Final = 12
"""Characters of a digest that are shown."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is otherwise than the list describes it."""

    host: str
    kind: str
    what: str
    wanted: str
    found: str

    def to_document(self) -> dict[str, Any]:
        """The difference for programs."""
        return {
            "host": self.host, "kind": self.kind, "what": self.what, "wanted": self.wanted, "found": self.found,
        }  # fmt: skip


def differences(
    hosts: Hosts, survey: Survey, nodes: Mapping[str, Node] | None, certificates: Collection[Certificate], now: datetime,
    bundle: Bundle | None = None,
) -> list[Difference]:  # fmt: skip
    """All differences, by host in the order of the list; a host that was not reached has none here.

    `nodes` is None where Kubernetes does not tell them, and empty where it is not there.
    """
    found: list[Difference] = []
    for plan in plan_of(hosts, survey, bundle):
        host = hosts.named(plan.name)
        seen = survey.seen.get(plan.name)
        if host is None or seen is None:
            continue
        found += (each for step in plan.steps if step.needed for each in _of_step(plan.name, step, seen.facts, bundle))
        found += _unfinished(plan.name, seen.facts)
        if host.in_kubernetes:
            found += _beside(plan.name, seen.facts) if made_by_up(seen.facts) else ()
            found += _versions(plan.name, f"v{hosts.kubernetes.version}", seen.facts)
            found += _membership(plan.name, nodes) if nodes is not None else ()
        found += (_late(each, now) for each in certificates if each.host == plan.name and _ends_soon(each, now))
    listed = {host.name for host in hosts.hosts if host.in_kubernetes}
    found += (
        Difference(name, "node", name, ABSENT, _state(node))
        for name, node in (nodes or {}).items()
        if name not in listed
    )
    return found


def _of_step(host: str, step: Step, own: Facts, bundle: Bundle | None) -> Iterator[Difference]:
    """What a step that is needed would change. A host that is no node is told of by its membership."""
    if step.kind == "file":
        yield _file(host, step, own)
    elif step.kind == "program":
        for each in step.files:
            yield Difference(
                host, "program", each.target, _short(each.digest), _short(own.programs.get(each.target, ""))
            )
    elif step.kind == "service":
        yield _service(host, step.title.split()[-1], own)
    elif step.kind == "image":
        for name, digest in sorted(_images(step, bundle).items()):
            if own.images.get(name) != digest:
                yield Difference(host, "image", name, _short(digest), _short(own.images.get(name, "")))
    elif step.kind == "registry":
        yield from _of_registry(host, step, own, bundle)
    elif step.kind == "swap":
        yield from (Difference(host, "swap", each.name, "off", "on") for each in own.swaps)
    elif step.kind in ("package", "module"):
        wanted = {"package": "installed", "module": "loaded"}[step.kind]
        yield from (
            Difference(host, step.kind, name, wanted, own.modules.get(name, ABSENT)) for name in step.call[1:]
        )  # fmt: skip
    elif step.kind == "sysctl":
        for setting in step.call[1:]:
            name, _, value = setting.partition("=")
            yield Difference(host, "sysctl", name.replace("/", "."), value, own.sysctls.get(name, ABSENT))


def _of_registry(host: str, step: Step, own: Facts, bundle: Bundle | None) -> Iterator[Difference]:
    """Images that the registry has not, or with another digest; certificates of it that are to be made or fetched."""
    if step.detail and bundle is not None and set(step.detail) <= bundle.images.keys():
        for name in step.detail:
            held = own.held.get(repository_of(name), "")
            yield Difference(host, "registry", name, _short(bundle.images[name]), _short(held))
        return
    found = step.detail[0] if step.detail else "others"
    wanted = (
        f"for {step.portal.address}, {SOON} days or more" if step.portal is not None else "as the registry has them"
    )
    yield Difference(host, "registry", "certificates", wanted, found if AUTHORITY_FILE in own.files else ABSENT)


def _service(host: str, name: str, own: Facts) -> Difference:
    unit = own.services.get(name)
    state = f"{unit.starts}, {unit.running}" if unit is not None else ABSENT
    stale = ", not restarted since its files changed" if state == _RUNS else ""
    return Difference(host, "service", name, _RUNS, f"{state}{stale}")


def _versions(host: str, wanted: str, own: Facts) -> Iterator[Difference]:
    for name in ("kubeadm", "kubelet"):
        if own.versions.get(name, ABSENT) != wanted:
            yield Difference(host, "version", name, wanted, own.versions.get(name, ABSENT))


def _file(name: str, step: Step, own: Facts) -> Difference:
    """A file whose content is another, by the SHA-256 of both."""
    path = step.title.split()[-1]
    there = own.files.get(path)
    if there is None:
        found = ABSENT
    elif len(there) >= MOST_READ:
        found = f"longer than {MOST_READ} bytes"
    else:
        found = _short(hashlib.sha256(there).hexdigest())
    return Difference(name, "file", path, _short(hashlib.sha256(step.content).hexdigest()), found)


def _images(step: Step, bundle: Bundle | None) -> dict[str, str]:
    """The digests of the images of a step, by name."""
    archives = bundle.archives if bundle is not None else ()
    return {name: digest for each in archives for name, digest in each.images.items() if name in step.detail}


def _beside(host: str, own: Facts) -> Iterator[Difference]:
    """What stands beside the files of `up` and changes what they do, now or at the next start of the host."""
    for unit, path in own.dropins:
        yield Difference(host, "drop-in", path, ABSENT, f"changes {unit}")
    for unit in sorted(own.unread):
        yield Difference(host, "service", unit, _RUNS, "its files changed since systemd read them")
    for name, value in SYSCTLS.items():
        later = own.later.get(sysctl_name(name), value)
        if later != value:
            yield Difference(host, "sysctl", name, f"{value} at the next start", f"{later} at the next start")
    for name in MODULES:
        if name in own.barred:
            yield Difference(host, "module", name, "loaded at the next start", f"{own.barred[name]} in modprobe.d")
    folder, _, own_name = CNI_FILE.rpartition("/")
    for name in sorted(own.cni):
        if name < own_name:  # containerd takes the first
            yield Difference(host, "file", f"{folder}/{name}", ABSENT, f"comes before {own_name}")
    if own.written and own.unfinished.isdisjoint(OF_KUBEADM):
        for path in sorted(own.written.keys() | own.node_files.keys()):
            wanted, found = own.written.get(path, ""), own.node_files.get(path, "")
            if wanted != found:
                yield Difference(host, "file", path, _short(wanted), _short(found))


def _unfinished(name: str, own: Facts) -> Iterator[Difference]:
    for mark in sorted(own.unfinished - own.services.keys()):
        yield Difference(name, "step", mark, "ended", "begun")


def _membership(name: str, nodes: Mapping[str, Node]) -> Iterator[Difference]:
    node = nodes.get(name)
    if node is None:
        yield Difference(name, "node", name, "joined", ABSENT)
    elif node.closed or node.cordoned or not node.ready:
        yield Difference(name, "node", name, "Ready", _state(node))


def _state(node: Node) -> str:
    """A node's state in words, as kubectl has it."""
    words = ["Ready" if node.ready else "NotReady"]
    words += ["cordoned"] if node.cordoned else []
    words += ["not validated"] if node.closed else []
    return ", ".join(words)


def _ends_soon(one: Certificate, now: datetime) -> bool:
    """Whether a certificate is a difference by its end; a step tells that of the registry's."""
    return not one.by_up and one.days_left(now) < SOON


def _late(one: Certificate, now: datetime) -> Difference:
    days = one.days_left(now)
    found = f"ends in {days} days" if days >= 0 else f"ended {-days} days ago"
    return Difference(one.host, "certificate", one.name, f"{SOON} days or more", found)


def _short(digest: str) -> str:
    bare = digest.removeprefix("sha256:")
    return f"sha256:{bare[:_SHORT]}" if bare else ABSENT
