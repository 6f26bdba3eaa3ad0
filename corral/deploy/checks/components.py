"""The components of a running cluster, parsed from what hosts print of them: each with its health, version and log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from corral.deploy.hosts.reader import CONTROL_PLANE, Host, Hosts
from corral.spec.errors import shorten

MOST_BYTES: Final = 8 * 1024 * 1024
"""Bytes that a host may print."""
_BEGIN, _END = "corral-status begin 1", "corral-status end 1"
_FIELDS: Final = {"unit": 5, "node": 6, "pod": 7, "certificates": 2, "registry": 2, "silent": 2, "worker": 5}
"""How many fields a line of each kind has."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9./_-]{0,300}")
SOON: Final = 30
"""Days before the end of a certificate from which it is warned of."""
_DAEMONS: Final = {"hdfs": "corral-datanode", "yarn": "corral-nodemanager"}
"""The units of a worker of Hadoop that its master speaks of."""
_SECONDS_OF_A_DAY: Final = 86400
_END_OF_REGISTRY: Final = re.compile(r"[0-9]{1,11}")
REGISTRY: Final = "corral-registry"
"""The certificates of the cluster's own registry, which end at once."""


class GarbledStatus(ValueError):
    """What a host printed tells no status; the message is the end of a sentence."""


@dataclass(frozen=True, slots=True)
class Component:
    """A part of the cluster on a host."""

    host: str
    name: str
    state: str
    good: bool
    version: str = ""
    since: str = ""
    """When it got its state, in UTC."""
    log: str = ""
    """The command that shows its log, on its host or, for kubectl, on a control plane."""

    def to_document(self) -> dict[str, Any]:
        """The component for programs."""
        return {
            "host": self.host, "name": self.name, "state": self.state, "good": self.good, "version": self.version,
            "since": self.since or None, "log": self.log,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate that kubeadm made on a control plane, or those of the cluster's own registry."""

    host: str
    name: str
    ends: datetime
    authority: bool
    """Whether it signs others: it is not renewed."""
    by_up: bool = False
    """Whether `up` makes it again, and `certs renew` does not."""

    def days_left(self, now: datetime) -> int:
        """Whole days until it ends, negative afterwards."""
        return int((self.ends - now).total_seconds() // _SECONDS_OF_A_DAY)


@dataclass(frozen=True, slots=True)
class Status:
    """What one host says."""

    components: tuple[Component, ...]
    certificates: tuple[Certificate, ...]
    asked: bool
    """Whether its Kubernetes answered."""


def parse_status(host: str, text: bytes) -> Status:
    """Parse what a host printed. Raises GarbledStatus."""
    lines = text.decode(errors="replace").split("\n")
    if _BEGIN not in lines or _END not in lines:
        raise GarbledStatus("its first or last line is missing")
    rows = [_row(line) for line in lines[lines.index(_BEGIN) + 1 : lines.index(_END)] if line]
    certificates = tuple(
        each for kind, fields in rows if kind == "certificates" for each in _certificates(host, fields[0])
    )
    certificates += tuple(each for kind, fields in rows if kind == "registry" for each in _of_registry(host, fields[0]))
    asked = any(kind == "node" for kind, _ in rows) and not any(kind == "silent" for kind, _ in rows)
    return Status(
        tuple(_component(host, kind, fields) for kind, fields in rows if kind not in ("certificates", "registry")),
        certificates, asked,
    )  # fmt: skip


def components_of(hosts: Hosts, found: Mapping[str, Status], lost: Mapping[str, str]) -> Iterator[Component]:
    """All components in the order of the hosts; a host that is no node, or was not reached, is told of as one."""
    each = {(part.host, part.name): part for status in found.values() for part in status.components}
    asked = any(status.asked for status in found.values())
    for host in hosts.hosts:
        if host.name in lost:
            yield Component(host.name, "ssh", lost[host.name], False)
        elif host.in_kubernetes and asked and (host.name, "node") not in each:
            yield Component(host.name, "node", "not in the cluster", False)
        yield from (part for part in each.values() if part.host == host.name)
    names = {host.name for host in hosts.hosts}
    yield from (part for part in each.values() if part.host not in names)


def hosts_with_certificates(hosts: Hosts) -> list[Host]:
    """The control planes, and the host of the cluster's own registry."""
    own = hosts.registry.host if hosts.registry is not None else ""
    return [host for host in hosts.hosts if CONTROL_PLANE in host.roles or host.name == own]


def control_planes(hosts: Hosts) -> list[Host]:
    """The hosts that have certificates of a control plane."""
    return [host for host in hosts.hosts if CONTROL_PLANE in host.roles]


def _row(line: str) -> tuple[str, list[str]]:
    kind, *fields = line.split("\t")
    if _FIELDS.get(kind) != len(fields) + 1:
        raise GarbledStatus(f"the line {shorten(line)!r} is none of a status")
    if kind != "certificates" and not all(field.isprintable() for field in fields):
        raise GarbledStatus("it has control characters")
    return kind, [field if kind == "certificates" else field[:400] for field in fields]


def _component(host: str, kind: str, fields: Iterable[str]) -> Component:
    if kind == "silent":
        (why,) = fields
        return Component(
            host, "api", f"Kubernetes does not answer: {shorten(why, 200)}", False, log="journalctl -u kubelet"
        )
    if kind == "unit":
        name, state, since, version = fields
        return Component(host, name, state or "absent", state == "active", version, since, f"journalctl -u {name}")
    if kind == "worker":
        name, part, state, well = fields
        if part not in _DAEMONS:
            raise GarbledStatus(f"{shorten(part)!r} is no part of Hadoop")
        log = f"journalctl -u {_DAEMONS[part]}"
        return Component(_known(name) if name else host, part, state, well == "well", log=log)
    if kind == "node":
        name, ready, since, version, cordoned = fields
        state = {"True": "Ready", "False": "NotReady"}.get(ready, "Unknown")
        shown = f"{state}, cordoned" if cordoned == "true" else state
        return Component(_known(name), "node", shown, ready == "True", version, since, "journalctl -u kubelet")
    name, node, phase, ready, since, image = fields
    namespace, _, pod = _known(name).partition("/")
    waits = phase == "Running" and set(ready.split()) != {"true"}
    good = phase == "Succeeded" or (phase == "Running" and not waits)
    state = "Running, not ready" if waits else phase
    return Component(
        node or "-", pod, state, good, image.rpartition(":")[2], since, f"kubectl -n {namespace} logs {pod}"
    )


def _known(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise GarbledStatus(f"{shorten(name)!r} is no name")
    return name


def _of_registry(host: str, text: str) -> Iterator[Certificate]:
    """The end of the registry's certificates, as its file says it in seconds; none where that says nothing."""
    if text and not _END_OF_REGISTRY.fullmatch(text):
        raise GarbledStatus("the end of the registry's certificates is no time")
    if text:
        yield Certificate(host, REGISTRY, datetime.fromtimestamp(int(text), UTC), False, by_up=True)


def _certificates(host: str, text: str) -> Iterator[Certificate]:
    try:
        data = json.loads(text) if text else {}
        for key in ("certificates", "certificateAuthorities"):
            for each in data.get(key) or ():
                if each.get("missing"):
                    continue
                ends = datetime.fromisoformat(each["expirationDate"])
                if ends.tzinfo is None:
                    raise ValueError
                yield Certificate(host, _known(each["name"]), ends, key == "certificateAuthorities")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise GarbledStatus("its list of certificates is none") from None
