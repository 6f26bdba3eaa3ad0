"""Read `hosts.yaml` to a list of hosts in which every default is applied; each error has its line."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from corral.deploy.hosts.document import (
    Corral,
    Hadoop,
    HostEntry,
    HostsDocument,
    Kubernetes,
    Machine,
    Monitoring,
    Registry,
    Sku,
    Ssh,
    Volume,
)
from corral.spec.errors import Problem, SpecError, describe, did_you_mean
from corral.spec.validation_messages import problems_of
from corral.spec.yaml_source import Source, parse_source

SSH_PORT: Final = 22
DATA_FOLDER: Final = "/var/lib"
"""Where the folders of data are made on a host that has no folder for data."""
CONTROL_PLANE: Final = "control-plane"
HADOOP: Final = "hadoop"
_REGISTRIES: Final = re.compile(r"^\s*\[[^\n]*cri[^\n]*\bregistry\b", re.MULTILINE)
"""The part of containerd's configuration that says how registries are reached."""
_PLAIN: Final = re.compile(r"/[A-Za-z0-9._/-]*")
_CONTROL_PLANES: Final = (0, 1, 3, 5)
"""How many hosts may be the control plane: with an even number the loss of half of them ends it."""


@dataclass(frozen=True, slots=True)
class Access:
    """How SSH reaches a host: "" and None leave the choice to ssh."""

    user: str = ""
    port: int = SSH_PORT
    key: str = ""


@dataclass(frozen=True, slots=True)
class Host:
    """One machine with every default applied."""

    name: str
    address: str
    roles: tuple[str, ...]
    internal_address: str = ""
    sku_name: str = ""
    sku: Sku | None = None
    access: Access = Access()
    data_folder: str = ""

    @property
    def in_kubernetes(self) -> bool:
        """Whether the host becomes a node of Kubernetes."""
        return CONTROL_PLANE in self.roles or "worker" in self.roles


@dataclass(frozen=True, slots=True)
class Hosts:
    """All machines in the order of the document, and what is chosen for the cluster."""

    cluster: str
    hosts: tuple[Host, ...]
    kubernetes: Kubernetes
    corral: Corral | None = None
    volumes: Mapping[str, Volume] = field(default_factory=dict)
    certificate: str = ""
    """The chain (PEM) that the list gives to the portal, once its file is read."""
    monitoring: Monitoring | None = None
    hadoop: Hadoop | None = None
    registry: Registry | None = None

    @property
    def hadoop_workers(self) -> tuple[str, ...]:
        """The names of the hosts that run a DataNode and a NodeManager."""
        if self.hadoop is None:
            return ()
        if self.hadoop.workers is not None:
            return tuple(self.hadoop.workers)
        others = tuple(host.name for host in self.hosts if HADOOP in host.roles and host.name != self.hadoop.master)
        return others or (self.hadoop.master,)

    def has_hadoop(self, host: Host) -> bool:
        """Whether a host runs a part of Hadoop."""
        return self.hadoop is not None and host.name in (self.hadoop.master, *self.hadoop_workers)

    def works_on(self, host: Host) -> bool:
        """Whether `up` installs something on a host."""
        return host.in_kubernetes or self.has_hadoop(host)

    def hadoop_folder(self, host: Host) -> str:
        """The folder of Hadoop's data on a host."""
        above = (self.hadoop.folder if self.hadoop else "") or host.data_folder or DATA_FOLDER
        return f"{above.rstrip('/')}/corral-hadoop"

    @property
    def registry_folder(self) -> str:
        """The folder of the images of the cluster's own registry; "" where there is none."""
        if self.registry is None:
            return ""
        host = self.named(self.registry.host)
        above = self.registry.folder or (host.data_folder if host else "") or DATA_FOLDER
        return f"{above.rstrip('/')}/corral-registry"

    @property
    def monitoring_folder(self) -> str:
        """The folder of the data of Prometheus and Alertmanager on their host; "" where there are none."""
        if self.monitoring is None:
            return ""
        host = self.named(self.monitoring.host)
        above = self.monitoring.folder or (host.data_folder if host else "") or DATA_FOLDER
        return f"{above.rstrip('/')}/corral-monitoring"

    @property
    def corral_folder(self) -> str:
        """The folder of Corral's database, logs and code on its host; "" where the list does not ask for it."""
        if self.corral is None:
            return ""
        host = self.named(self.corral.host)
        above = self.corral.folder or (host.data_folder if host else "") or DATA_FOLDER
        return f"{above.rstrip('/')}/corral-data"

    def named(self, name: str) -> Host | None:
        """The host of that name, if there is one."""
        return next((host for host in self.hosts if host.name == name), None)


def load_hosts(text: str | bytes, *, filename: str = "hosts.yaml") -> Hosts:
    """Read a Hosts document. Raises SpecError with every problem, each with line and column."""
    return _read(parse_source(text, filename))


def hosts_of(data: Mapping[str, Any], *, filename: str) -> Hosts:
    """Read a Hosts document that is given as data. Raises SpecError with every problem."""
    return _read(Source(filename, dict(data)))


def _read(source: Source) -> Hosts:
    if not isinstance(source.data, dict):
        raise SpecError([source.problem((), f"expected a Hosts document (a mapping), got {describe(source.data)}")])
    try:
        document = HostsDocument.model_validate(source.data, by_alias=True, by_name=False)
    except ValidationError as error:
        raise SpecError(problems_of(error, HostsDocument, source)) from None
    problems = [source.problem(path, message) for path, message in _inconsistencies(document)]
    if problems:
        raise SpecError(problems)
    hosts = tuple(_host(document, name, entry) for name, entry in document.hosts.items())
    problems = [
        *_in_roles(source, document, hosts),
        *_clashes(source, document),
        *_of_corral(source, document, hosts),
    ]
    if problems:
        raise SpecError(problems)
    whole = Hosts(
        document.cluster, hosts, document.kubernetes, document.corral, document.volumes,
        monitoring=document.monitoring, hadoop=document.hadoop, registry=document.registry,
    )  # fmt: skip
    problems = [
        *_of_volumes(source, document, whole),
        *_of_monitoring(source, document, whole),
        *_of_hadoop(source, document, whole),
        *_of_registry(source, document, whole),
    ]
    if problems:
        raise SpecError(problems)
    return whole


def _inconsistencies(document: HostsDocument) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Names that refer to nothing."""
    for part, machines in (("groups", document.groups), ("hosts", document.hosts)):
        for name, machine in machines.items():
            if machine.sku is not None and machine.sku not in document.skus:
                hint = did_you_mean(machine.sku, document.skus)
                yield (part, name, "sku"), f"there is no {describe(machine.sku)} below skus{hint}"
            if len(set(machine.roles or ())) < len(machine.roles or ()):
                yield (part, name, "roles"), "a role is repeated"
    for name, entry in document.hosts.items():
        if entry.group is not None and entry.group not in document.groups:
            hint = did_you_mean(entry.group, document.groups)
            yield ("hosts", name, "group"), f"there is no {describe(entry.group)} below groups{hint}"
    pods, services = (
        ipaddress.ip_network(each) for each in (document.kubernetes.pod_subnet, document.kubernetes.service_subnet)
    )
    if pods.overlaps(services):
        yield ("kubernetes", "serviceSubnet"), f"{services} and the pods' {pods} overlap"
    for name, entry in document.hosts.items():
        for key, address in (("address", entry.address), ("internalAddress", entry.internal_address)):
            for subnet in (pods, services):
                if _is_ip(address) and ipaddress.ip_address(address) in subnet:
                    yield ("hosts", name, key), f"{address} lies in {subnet}, which pods or services get addresses of"


def _host(document: HostsDocument, name: str, entry: HostEntry) -> Host:
    group: Machine = (
        document.groups[entry.group]
        if entry.group is not None
        else Machine(roles=None, sku=None, ssh=None, data_folder=None)
    )
    access = _access([entry.ssh, group.ssh, document.ssh])
    sku = entry.sku or group.sku or ""
    roles = entry.roles if entry.roles is not None else group.roles or []
    folder = entry.data_folder if entry.data_folder is not None else group.data_folder or ""
    return Host(
        name, entry.address, tuple(roles), entry.internal_address, sku, document.skus.get(sku), access, folder
    )  # fmt: skip


def _access(given: list[Ssh | None]) -> Access:
    """The first value of each field, from the narrowest to the widest."""
    said = [each for each in given if each is not None]
    user = next((each.user for each in said if each.user is not None), "")
    port = next((each.port for each in said if each.port is not None), SSH_PORT)
    return Access(user, port, next((each.key for each in said if each.key is not None), ""))


def _in_roles(source: Source, document: HostsDocument, hosts: tuple[Host, ...]) -> Iterator[Problem]:
    for host in hosts:
        if not host.roles:
            yield source.problem(("hosts", host.name), "it has no roles, and its group gives it none", at_key=True)
    planes = [host.name for host in hosts if CONTROL_PLANE in host.roles]
    if len(planes) not in _CONTROL_PLANES:
        yield source.problem(
            ("hosts", planes[-1]), f"{len(planes)} hosts are control planes; choose one, three or five", at_key=True
        )
    if any("worker" in host.roles for host in hosts) and not planes:
        yield source.problem(("hosts",), "there are workers, and no host has the role control-plane", at_key=True)


def _of_corral(source: Source, document: HostsDocument, hosts: tuple[Host, ...]) -> Iterator[Problem]:
    """A host for Corral that is none of the cluster; a certificate without its key."""
    chosen = document.corral
    if chosen is None:
        return
    host = next((host for host in hosts if host.name == chosen.host), None)
    if host is None:
        hint = did_you_mean(chosen.host, document.hosts)
        yield source.problem(("corral", "host"), f"there is no {describe(chosen.host)} below hosts{hint}")
    elif not host.in_kubernetes:
        yield source.problem(("corral", "host"), f"{chosen.host} is neither a control plane nor a worker")
    if (chosen.certificate is None) != (chosen.key is None):
        yield source.problem(("corral",), "certificate and key are given together", at_key=True)


def _of_volumes(source: Source, document: HostsDocument, whole: Hosts) -> Iterator[Problem]:
    """A volume of a host that is no node; two volumes in one folder, or one within another or within other data."""
    nodes = _nodes(whole.hosts)
    taken: list[tuple[str, str, str]] = []
    if document.corral is not None:
        taken.append(("Corral's data", document.corral.host, f"{whole.corral_folder}/"))
    if document.monitoring is not None:
        taken.append(("the data of monitoring", document.monitoring.host, f"{whole.monitoring_folder}/"))
    for name, volume in document.volumes.items():
        if volume.host not in document.hosts:
            hint = did_you_mean(volume.host, document.hosts)
            yield source.problem(("volumes", name, "host"), f"there is no {describe(volume.host)} below hosts{hint}")
        elif volume.host not in nodes:
            yield source.problem(("volumes", name, "host"), f"{volume.host} is neither a control plane nor a worker")
        if not volume.size:
            yield source.problem(("volumes", name), 'size is needed, such as "500Gi"', at_key=True)
        folder = volume.folder.rstrip("/") + "/"
        for other, host, there in taken:
            if host == volume.host and _overlap(folder, there):
                yield source.problem(("volumes", name, "folder"), f"{volume.folder} is a folder of {other} already")
        taken.append((name, volume.host, folder))


def _of_monitoring(source: Source, document: HostsDocument, whole: Hosts) -> Iterator[Problem]:
    """Monitoring without Corral; a host of it that is no node; data in Corral's folder."""
    chosen = document.monitoring
    if chosen is None:
        return
    if document.corral is None:
        yield source.problem(("monitoring",), "it is a part of Corral's chart: add the section corral", at_key=True)
    if chosen.host not in document.hosts:
        hint = did_you_mean(chosen.host, document.hosts)
        yield source.problem(("monitoring", "host"), f"there is no {describe(chosen.host)} below hosts{hint}")
    elif chosen.host not in _nodes(whole.hosts):
        yield source.problem(("monitoring", "host"), f"{chosen.host} is neither a control plane nor a worker")
    own, corrals = whole.monitoring_folder, whole.corral_folder
    if document.corral is not None and document.corral.host == chosen.host and _overlap(f"{own}/", f"{corrals}/"):
        message = f"{own} and {corrals} of Corral's data overlap"
        yield source.problem(("monitoring", "folder" if chosen.folder else "host"), message)


def _of_hadoop(source: Source, document: HostsDocument, whole: Hosts) -> Iterator[Problem]:
    """Hosts of Hadoop that are none of the role; a worker named twice."""
    chosen = document.hadoop
    if chosen is None:
        return
    workers = tuple(chosen.workers or ())
    named: list[tuple[tuple[str | int, ...], str]] = [
        (("hadoop", "master"), chosen.master),
        *((("hadoop", "workers", at), name) for at, name in enumerate(workers)),
        *((("hadoop", "nodes", name), name) for name in chosen.nodes),
    ]
    for path, name in named:
        host = whole.named(name)
        if host is None:
            hint = did_you_mean(name, document.hosts)
            yield source.problem(path, f"there is no {describe(name)} below hosts{hint}")
        elif HADOOP not in host.roles:
            yield source.problem(path, f"{name} does not have the role hadoop")
    if len(set(workers)) < len(workers):
        yield source.problem(("hadoop", "workers"), "a host is repeated")
    for at, network in enumerate(chosen.clients):
        if ":" in network:
            yield source.problem(("hadoop", "clients", at), "Hadoop does not support IPv6")
    if chosen.queue == "default":
        yield source.problem(("hadoop", "queue"), "default is the queue of all others: choose another name")


def _of_registry(source: Source, document: HostsDocument, whole: Hosts) -> Iterator[Problem]:
    """A registry on a host that is no node, in a folder of other data, or set in containerd's further lines, too."""
    chosen = document.registry
    if chosen is None:
        return
    if chosen.host not in document.hosts:
        hint = did_you_mean(chosen.host, document.hosts)
        yield source.problem(("registry", "host"), f"there is no {describe(chosen.host)} below hosts{hint}")
    elif chosen.host not in _nodes(whole.hosts):
        yield source.problem(("registry", "host"), f"{chosen.host} is neither a control plane nor a worker")
    own = f"{whole.registry_folder}/"
    for name, volume in document.volumes.items():
        if volume.host == chosen.host and _overlap(own, volume.folder.rstrip("/") + "/"):
            path = ("registry", "folder" if chosen.folder else "host")
            yield source.problem(path, f"{whole.registry_folder} and the volume {name} overlap")
    if not _PLAIN.fullmatch(own):
        yield source.problem(("registry", "folder"), "letters, digits, '.', '_', '-' and '/' alone may be in it")
    if _REGISTRIES.search(document.kubernetes.containerd):
        message = "the section registry sets where containerd looks for registries: take that part out"
        yield source.problem(("kubernetes", "containerd"), message)


def _nodes(hosts: tuple[Host, ...]) -> set[str]:
    """The names of the hosts that are nodes of Kubernetes."""
    return {host.name for host in hosts if host.in_kubernetes}


def _overlap(one: str, other: str) -> bool:
    """Whether of two folders, each with a stroke at its end, one is within the other."""
    return one.startswith(other) or other.startswith(one)


def _clashes(source: Source, document: HostsDocument) -> Iterator[Problem]:
    """Two hosts at one address and port; two at one internal address."""
    reached: dict[tuple[str, int], str] = {}
    inside: dict[str, str] = {}
    for name, entry in document.hosts.items():
        group = document.groups.get(entry.group or "")
        port = _access([entry.ssh, group.ssh if group else None, document.ssh]).port
        first = reached.setdefault((entry.address, port), name)
        if first != name:
            yield source.problem(("hosts", name, "address"), f"{entry.address} is the address of {first} already")
        if entry.internal_address:
            first = inside.setdefault(entry.internal_address, name)
            if first != name:
                message = f"{entry.internal_address} is the internal address of {first} already"
                yield source.problem(("hosts", name, "internalAddress"), message)


def _is_ip(address: str) -> bool:
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return False
    return True
