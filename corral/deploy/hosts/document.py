"""The Hosts document: the machines of a cluster to be, how SSH reaches them, their roles and their hardware.

```yaml
kind: Hosts
cluster: lab
ssh: {user: admin, key: ~/.ssh/id_ed25519}
skus:
  a100: {cpu: 96, memory: 1000Gi, devices: {vendor: nvidia, count: 8}}
hosts:
  head: {address: 10.0.0.1, roles: [control-plane]}
  gpu1: {address: 10.0.0.2, roles: [worker], sku: a100}
```

What a host does not say comes from its group, and then from the document itself.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Final, Literal

import yaml
from pydantic import AfterValidator, BeforeValidator, Field

from corral.spec.base import PATTERN_MEANINGS, Cpu, Memory, Name, SpecModel, Text, refusal
from corral.spec.devices_document import load_devices
from corral.spec.errors import SpecError, describe
from corral.spec.yaml_scalars import written

MOST_HOSTS: Final = 1000
MOST_GROUPS: Final = 200
MOST_LINES: Final = 20_000
"""Characters of what is added to a configuration."""
_KUBEADM_KINDS: Final = ("KubeletConfiguration", "KubeProxyConfiguration")
ROLES: Final = ("control-plane", "worker", "storage", "hadoop")
_DNS: Final = re.compile(
    r"(?=.{1,253}\Z)[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?)*"
)
_USER: Final = r"^[A-Za-z_][A-Za-z0-9_.-]*$"
_KEY: Final = r"^[^\x00-\x1f\x7f]+$"
_VERSION: Final = r"^1\.[1-9][0-9]\.[0-9]{1,3}$"

PATTERN_MEANINGS[_USER] = "letters, digits, '-', '_' and '.', beginning with a letter or '_'"
PATTERN_MEANINGS[_VERSION] = "a version of Kubernetes such as 1.34.4"
PATTERN_MEANINGS[_KEY] = "the path of a file, without control characters"

_IMAGE: Final = r"^[a-z0-9][a-z0-9._:/-]{0,250}:[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$"
PATTERN_MEANINGS[_IMAGE] = "an image with its tag, such as registry.example/corral:0.1.0"

_PROPERTY: Final = r"^[A-Za-z][A-Za-z0-9._/*-]*$"
PATTERN_MEANINGS[_PROPERTY] = "the name of a property, such as dfs.replication"
_REGISTRY: Final = r"^[a-z0-9][a-z0-9.-]*(:[0-9]{1,5})?$"
PATTERN_MEANINGS[_REGISTRY] = "the name of a registry as images have it, such as docker.io"

_VALUE: Final = r"^[^\x00-\x1f\x7f]*$"
PATTERN_MEANINGS[_VALUE] = "a value on one line, without control characters"

Role = Literal["control-plane", "worker", "storage", "hadoop"]
Vendor = Literal["nvidia", "amd", "ascend"]


def _address(value: str) -> str:
    try:
        return str(ipaddress.ip_address(value))
    except ValueError:
        if _DNS.fullmatch(value) and not value.replace(".", "").isdigit():
            return value.lower()
    raise refusal(f"expected an IP address or a DNS name, got {describe(value)}")


def _ip_address(value: str) -> str:
    if not value:
        return value
    try:
        return str(ipaddress.ip_address(value))
    except ValueError:
        raise refusal(f"expected an IP address, got {describe(value)}") from None


def _subnet(value: str) -> str:
    try:
        return str(ipaddress.ip_network(value))
    except ValueError:
        raise refusal(f"expected a network such as 10.244.0.0/16, got {describe(value)}") from None


def _endpoint(value: str) -> str:
    return _address(value) if value else value


def _folder(value: str) -> str:
    if value and (not value.startswith("/") or "\n" in value or ".." in value.split("/")):
        raise refusal(f"expected an absolute path, got {describe(value)}")
    return value


def _kubeadm_documents(value: str) -> str:
    try:
        documents = list(yaml.safe_load_all(value)) if value else []
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise refusal(f"expected YAML: {describe(str(error))}") from None
    for each in documents:
        kind = each.get("kind") if isinstance(each, dict) else None
        if kind not in _KUBEADM_KINDS:
            raise refusal(f"expected documents of kind {' or '.join(_KUBEADM_KINDS)}, got {describe(kind)}")
    return value


def _devices(value: str) -> str:
    try:
        if value:
            load_devices(value)
    except SpecError as error:
        raise refusal(f"expected a Devices document: {error.problems[0].message}") from None
    return value


def _chart_values(value: str) -> str:
    try:
        found = yaml.safe_load(value) if value else {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise refusal(f"expected YAML: {describe(str(error))}") from None
    if not (found is None or isinstance(found, dict)):
        raise refusal(f"expected a mapping, got {describe(found)}")
    return value


Address = Annotated[str, Field(min_length=1, max_length=253), BeforeValidator(written), AfterValidator(_address)]
IpAddress = Annotated[str, Field(max_length=45), BeforeValidator(written), AfterValidator(_ip_address)]
Subnet = Annotated[str, Field(max_length=50), BeforeValidator(written), AfterValidator(_subnet)]
Endpoint = Annotated[str, Field(max_length=253), BeforeValidator(written), AfterValidator(_endpoint)]
Folder = Annotated[str, Field(max_length=1000), BeforeValidator(written), AfterValidator(_folder)]
Lines = Annotated[str, Field(max_length=MOST_LINES)]
KubeadmDocuments = Annotated[str, Field(max_length=MOST_LINES), AfterValidator(_kubeadm_documents)]
DevicesText = Annotated[str, Field(max_length=MOST_LINES), AfterValidator(_devices)]
ChartValues = Annotated[str, Field(max_length=MOST_LINES), AfterValidator(_chart_values)]
Image = Annotated[str, Field(max_length=400, pattern=_IMAGE), BeforeValidator(written)]
Path = Annotated[str, Field(min_length=1, max_length=1000, pattern=_KEY)]
Port = Annotated[int, Field(ge=1, le=65535)]
User = Annotated[str, Field(min_length=1, max_length=32, pattern=_USER), BeforeValidator(written)]


RegistryName = Annotated[str, Field(max_length=253, pattern=_REGISTRY), BeforeValidator(written)]
HadoopFile = Literal["core-site", "hdfs-site", "yarn-site", "capacity-scheduler"]
PropertyName = Annotated[str, Field(max_length=300, pattern=_PROPERTY)]
PropertyValue = Annotated[str, Field(max_length=4000, pattern=_VALUE), BeforeValidator(written)]
HadoopProperties = Annotated[dict[PropertyName, PropertyValue], Field(max_length=200)]


class Ssh(SpecModel):
    """How SSH reaches a host. Passwords are not taken: give the account a key, and sudo without a password."""

    user: User | None = Field(
        None, description="The account to sign in with; without it the one that runs the command."
    )
    port: Port | None = Field(None, description="The port of the SSH server; 22 without it.")
    key: Text | None = Field(
        None,
        max_length=1000,
        pattern=_KEY,
        description="The file of the private key, relative to this document's folder; without it those that ssh tries.",
    )


class SkuDevices(SpecModel):
    """The accelerators of a machine."""

    vendor: Vendor = Field("nvidia", description="Who made them: nvidia, amd or ascend.")
    count: Annotated[int, Field(ge=1, le=1024)] = Field(description="How many of them the machine has.")
    model: Text = Field(
        "", max_length=200, description="Their model, such as A100, for people and for the cluster document."
    )


class Sku(SpecModel):
    """A kind of machine, with what each machine of the kind must have at least."""

    cpu: Cpu = Field("", description='Processors, such as "96"; without it they are not compared.')
    memory: Memory = Field("", description='Memory, such as "1000Gi"; without it the memory is not compared.')
    devices: SkuDevices | None = Field(None, description="Its accelerators; without it none are expected.")


class Machine(SpecModel):
    """The fields that a group gives to its hosts and that a host may say itself."""

    roles: Annotated[list[Role], Field(min_length=1, max_length=len(ROLES))] | None = Field(
        None, description="What it does in the cluster: control-plane, worker, storage, hadoop."
    )
    sku: Name | None = Field(None, description="Its kind of machine, a name below skus.")
    ssh: Ssh | None = Field(None, description="How SSH reaches it, field by field over the wider defaults.")
    data_folder: Folder | None = Field(None, description="The folder for the data of storage and Hadoop.")


class Group(Machine):
    """What several hosts have in common."""


class HostEntry(Machine):
    """One machine."""

    address: Address = Field(description="The IP address or DNS name at which SSH reaches it.")
    internal_address: IpAddress = Field(
        "", description="The IP address for traffic of the cluster; without it the one that SSH arrives at."
    )
    group: Name | None = Field(None, description="Its group, a name below groups.")


class Kubernetes(SpecModel):
    """What is chosen of Kubernetes."""

    version: Annotated[str, Field(pattern=_VERSION), BeforeValidator(written)] = Field(
        "1.34.4", description="The version that is installed, such as 1.34.4."
    )
    endpoint: Endpoint = Field(
        "",
        description="The address of the control plane; needed where several hosts are one, and then reaches any of them.",
    )
    pod_subnet: Subnet = Field("10.244.0.0/16", description="The network that pods get addresses of.")
    service_subnet: Subnet = Field("10.96.0.0/12", description="The network that services get addresses of.")
    containerd: Lines = Field("", description="Further lines of containerd's configuration, in TOML.")
    kubeadm: KubeadmDocuments = Field(
        "",
        description="Further documents for kubeadm init, in YAML: KubeletConfiguration and KubeProxyConfiguration.",
    )


class Corral(SpecModel):
    """Corral itself in the cluster: its chart, with PostgreSQL."""

    host: Name = Field(description="The host that runs the server and has its data on disk, a name below hosts.")
    image: Image = Field(description="Corral's image with its tag; the bundle has it.")
    postgresql: Image = Field(description="PostgreSQL's image with its tag; the bundle has it.")
    folder: Folder = Field(
        "", description="The folder that corral-data is made in; without it the host's dataFolder, else /var/lib."
    )
    namespace: Name = Field("corral", description="The namespace of Corral and of its jobs' pods.")
    address: Endpoint = Field(
        "",
        description="The address at which browsers and jobs reach the portal; without it the host's own in the cluster.",
    )
    port: Annotated[int, Field(ge=30000, le=32767)] = Field(
        30443, description="The port of the portal, on every host of the cluster."
    )
    certificate: Path | None = Field(
        None,
        description="The file of the portal's certificate chain (PEM), relative to this document's folder; without it one "
        "of its own is made.",
    )
    key: Path | None = Field(None, description="The file of the certificate's private key (PEM); never in git.")
    devices: DevicesText = Field(
        "",
        description="A Devices document in YAML: Corral's device plugin runs on every node and offers these devices.",
    )
    node_agents: bool = Field(
        False, description="Whether an agent on every node tells what its tasks and devices use, to the server alone."
    )
    values: ChartValues = Field("", description="Further values of the chart, in YAML.")


class Monitoring(SpecModel):
    """Prometheus and Alertmanager in the cluster, which read Corral and tell it what fires; a part of Corral's chart."""

    host: Name = Field(description="The host that runs both and has their data on disk, a name below hosts.")
    prometheus: Image = Field(description="Prometheus' image with its tag; the bundle has it.")
    alertmanager: Image = Field(description="Alertmanager's image with its tag; the bundle has it.")
    node_exporter: Image | Literal[""] = Field(
        "", description="Node exporter's image with its tag, for every node; without it none is installed."
    )
    folder: Folder = Field(
        "", description="The folder that corral-monitoring is made in; without it the host's dataFolder, else /var/lib."
    )
    retention_days: Annotated[int, Field(ge=1, le=3650)] = Field(
        30, description="Days for which Prometheus keeps series."
    )
    retention_size: Memory = Field(
        "", description='Bytes that the series take at most, such as "100Gi"; without it days alone bound them.'
    )
    boards: bool = Field(
        False, description="Whether the boards and the data source are made for a Grafana that looks for their labels."
    )


class HadoopNode(SpecModel):
    """What the NodeManager of one host offers, where it is not what its kind of machine says."""

    cpu: Cpu = Field("", description='Processors for containers, such as "16".')
    memory: Memory = Field("", description='Memory for containers, such as "64Gi".')
    devices: Annotated[int, Field(ge=0, le=1024)] | None = Field(None, description="Devices for containers.")


class Hadoop(SpecModel):
    """HDFS, YARN and ZooKeeper as services of the system, on hosts of the role hadoop."""

    master: Name = Field(description="The host that runs the NameNode, the ResourceManager and ZooKeeper.")
    workers: Annotated[list[Name], Field(min_length=1, max_length=MOST_HOSTS)] | None = Field(
        None,
        description="The hosts that run a DataNode and a NodeManager each; without it all of the role hadoop but the "
        "master, or the master where it is the only one.",
    )
    folder: Folder = Field(
        "", description="The folder that corral-hadoop is made in; without it the host's dataFolder, else /var/lib."
    )
    user: User = Field("corral", description="Corral's own user in Hadoop, who may act for others.")
    queue: Name = Field(
        "corral", description="The queue of the capacity scheduler that is Corral's; another is default."
    )
    share: Annotated[int, Field(ge=1, le=99)] = Field(
        90, description="Percent of the cluster that Corral's queue is given; it may use what the other one leaves."
    )
    replication: Annotated[int, Field(ge=1, le=100)] | None = Field(
        None, description="Copies of each block of HDFS; without it three, or as many as there are workers."
    )
    heap: Memory = Field("1Gi", description="Memory of the NameNode's and of the ResourceManager's Java, each.")
    reserved: Memory = Field(
        "2Gi",
        description="Memory of each host that its NodeManager does not offer, where nodes do not say how much it does.",
    )
    nodes: Annotated[dict[Name, HadoopNode], Field(max_length=MOST_HOSTS)] = Field(
        {},
        description="What NodeManagers offer, by host; without it what the kind of machine, or the machine itself, has.",
    )
    clients: Annotated[list[Subnet], Field(max_length=100)] = Field(
        [], description="Addresses or networks that may call Hadoop besides the hosts of this list; others are refused."
    )
    properties: Annotated[dict[HadoopFile, HadoopProperties], Field(max_length=4)] = Field(
        {},
        description="Further properties by file (core-site, hdfs-site, yarn-site, capacity-scheduler), over Corral's own.",
    )


class Registry(SpecModel):
    """A registry of the cluster's own, which nodes ask for images before any other; the bundle fills it."""

    host: Name = Field(description="The node that runs it and has its images on disk, a name below hosts.")
    port: Annotated[int, Field(ge=1024, le=29999)] = Field(
        5443,
        description="Its port, at the host's address in the cluster; TLS and a certificate of a node's are needed.",
    )
    folder: Folder = Field(
        "", description="The folder that corral-registry is made in; without it the host's dataFolder, else /var/lib."
    )
    mirrors: Annotated[list[RegistryName], Field(max_length=50)] = Field(
        ["docker.io", "ghcr.io", "quay.io", "registry.k8s.io"],
        description="The registries whose images it is asked for first, besides those that the bundle has images of.",
    )


class Volume(SpecModel):
    """A folder of a host as a local volume of Kubernetes, for one claim of the class corral-local."""

    host: Name = Field(description="The host that has the folder, a name below hosts.")
    folder: Annotated[str, Field(min_length=2, max_length=1000), BeforeValidator(written), AfterValidator(_folder)] = (
        Field(description="The folder, best a file system of its own: nothing else bounds what is written into it.")
    )
    size: Memory = Field(description='What claims may ask of it, such as "500Gi".')


class HostsDocument(SpecModel):
    """The machines of a cluster, for `corral deploy`."""

    api_version: Literal["corral.dev/v1alpha1"] = Field(
        "corral.dev/v1alpha1", description="The version of this language."
    )
    kind: Literal["Hosts"] = Field("Hosts", description="Always Hosts.")
    cluster: Name = Field("corral", description="The cluster's name.")
    ssh: Ssh = Field(
        Ssh(user=None, port=None, key=None), description="How SSH reaches the hosts that do not say otherwise."
    )
    skus: Annotated[dict[Name, Sku], Field(max_length=MOST_GROUPS)] = Field(
        {}, description="Kinds of machines by name."
    )
    groups: Annotated[dict[Name, Group], Field(max_length=MOST_GROUPS)] = Field(
        {}, description="Defaults for hosts that name the group."
    )
    hosts: Annotated[dict[Name, HostEntry], Field(min_length=1, max_length=MOST_HOSTS)] = Field(
        description="The machines by name; the name becomes that of the node."
    )
    kubernetes: Kubernetes = Field(
        Kubernetes(
            version="1.34.4",
            endpoint="",
            pod_subnet="10.244.0.0/16",
            service_subnet="10.96.0.0/12",
            containerd="",
            kubeadm="",
        ),
        description="What is chosen of Kubernetes.",
    )
    volumes: Annotated[dict[Name, Volume], Field(max_length=MOST_HOSTS)] = Field(
        {}, description="Local volumes by name: folders of hosts for claims of the class corral-local."
    )
    corral: Corral | None = Field(
        None, description="Corral itself in the cluster; without it, `up` ends with Kubernetes."
    )
    monitoring: Monitoring | None = Field(
        None, description="Prometheus and Alertmanager in the cluster; without it there are none."
    )
    hadoop: Hadoop | None = Field(
        None,
        description="HDFS and YARN on the hosts of the role hadoop; without it nothing is installed for that role.",
    )
    registry: Registry | None = Field(
        None, description="A registry of the cluster's own, filled from the bundle; without it there is none."
    )
