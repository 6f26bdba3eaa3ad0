"""Corral itself in the cluster: the values of its chart, the folders of its data, the portal's certificate, and the steps.

helm installs the chart on the first control plane, as the chart looks up the keys that the cluster has already.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from corral.deploy.checks.between_hosts import cluster_address, registry_endpoint
from corral.deploy.checks.facts import Facts
from corral.deploy.checks.ours import MARK
from corral.deploy.hosts.document import Corral
from corral.deploy.hosts.reader import Host, Hosts
from corral.deploy.steps import files, monitoring
from corral.deploy.steps.bundle import CHART, HELM, Bundle, listing
from corral.deploy.steps.step import Portal, Step
from corral.kernel.certificate import first_certificate

UNFINISHED_DATA, UNFINISHED_PORTAL, UNFINISHED_CORRAL = "data", "portal", "corral"
"""What a host keeps a mark of while it is begun and not done."""
WRITE_CERTIFICATE: Final = "write_certificate"
"""The function of `do.sh` that is sent the portal's key."""
RELEASE: Final = "corral"
TLS_SECRET: Final = "corral-portal"
AGENT_SECRET: Final = "corral-agent"
_SERVER_USER, _DATABASE_USER = 1000, 999
"""The users of both pods, unless the chart's further values say otherwise."""
_OWN: Final = re.compile(r"# Corral's own certificate for (?P<address>\S{1,300}) until (?P<end>\d{1,11})\n")
"""The first line of the file of a certificate of its own; other certificates have none."""
_REGISTRY_SETTING: Final = "cluster_registry"
"""The server's setting that names the cluster's own registry."""
_RENEW_BEFORE: Final = 30 * 86400
"""Seconds before its end at which a certificate of Corral's own is made again."""


@dataclass(frozen=True, slots=True)
class Installation:
    """What the list of hosts asks for of Corral."""

    hosts: Hosts
    chosen: Corral
    address: str
    """The address of the portal."""
    registry: str = ""
    """HOST:PORT of the cluster's own registry, whose certificate the server watches; "" where there is none."""

    @property
    def url(self) -> str:
        """The address of the portal for browsers and jobs."""
        at = f"[{self.address}]" if ":" in self.address else self.address
        return f"https://{at}:{self.chosen.port}"

    @property
    def data_folder(self) -> str:
        """The folder of the database, logs and code, on the chosen host."""
        return self.hosts.corral_folder

    def values(self, bundle: Bundle) -> dict[str, Any]:
        """The chart's values: those of the list over our own."""
        (image, _, tag), folder = self.chosen.image.rpartition(":"), self.data_folder
        own: dict[str, Any] = {
            "image": {"repository": image, "tag": tag, "pullPolicy": "IfNotPresent"},
            "url": self.url,
            "tls": {"existingSecret": TLS_SECRET},
            "service": {"type": "NodePort", "nodePort": self.chosen.port},
            "database": {
                "trial": {
                    "enabled": True,
                    "image": self.chosen.postgresql,
                    "volume": _folder(f"{folder}/database"),
                    "user": _DATABASE_USER,
                }
            },
            "blobs": {"volume": _folder(f"{folder}/blobs")},
            "nodeSelector": {"kubernetes.io/hostname": self.chosen.host},
            "tolerations": [
                {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}
            ],
            "user": _SERVER_USER,
            # Another image of the same name starts the pods again.
            "podAnnotations": {"corral.dev/image": bundle.images.get(self.chosen.image, "")},
        }
        if self.chosen.devices:
            own["devicePlugin"] = {"enabled": True, "devices": self.chosen.devices}
        if self.chosen.node_agents:
            own["nodeAgent"] = {"enabled": True, "tokenSecret": AGENT_SECRET}
        if self.registry:
            own["settings"] = {_REGISTRY_SETTING: self.registry}
        if self.hosts.monitoring is not None:
            own["monitoring"] = monitoring.values_of(self.hosts, self.hosts.monitoring, bundle)
        return _merged(own, self._further)

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the chart that the list asks for besides the server, in words."""
        asked = (
            ("the device plugin", bool(self.chosen.devices)),
            ("an agent on each node", self.chosen.node_agents),
            ("Prometheus", self.hosts.monitoring is not None),
            ("Alertmanager", self.hosts.monitoring is not None),
        )
        return tuple(name for name, wanted in asked if wanted)

    def values_text(self, bundle: Bundle) -> str:
        """The file of the chart's values. It changes with the chart, so that a new chart is installed."""
        chart = bundle.chart.digest if bundle.chart else ""
        return f"{MARK}# The chart has the SHA-256 {chart}.\n" + yaml.safe_dump(self.values(bundle), sort_keys=False)

    def data_of(self, host: str) -> Mapping[str, Any]:
        """The users of the folders of data that a host has, by folder."""
        merged = _merged(
            {
                "user": _SERVER_USER,
                "database": {"trial": {"user": _DATABASE_USER}},
                "monitoring": {"user": monitoring.USER},
            },
            self._further,
        )
        found: dict[str, Any] = {}
        if host == self.chosen.host:
            found[f"{self.data_folder}/database"] = merged["database"]["trial"]["user"]
            found[f"{self.data_folder}/blobs"] = merged["user"]
        if self.hosts.monitoring is not None and host == self.hosts.monitoring.host:
            found[monitoring.data_folder(self.hosts)] = merged["monitoring"]["user"]
        return found

    def missing(self, bundle: Bundle) -> Iterator[str]:
        """What a bundle lacks of it."""
        for what, there in ((HELM, bundle.helm), (CHART, bundle.chart)):
            if there is None:
                yield f"the bundle has no {what}, and the list asks for Corral"
        of_monitoring = monitoring.images_of(self.hosts.monitoring) if self.hosts.monitoring is not None else ()
        for image in (self.chosen.image, self.chosen.postgresql, *of_monitoring):
            if image not in bundle.images:
                yield f"the bundle has no image {image}, and the list asks for it"

    @property
    def _further(self) -> Mapping[str, Any]:
        found = yaml.safe_load(self.chosen.values) if self.chosen.values else None
        return found if isinstance(found, dict) else {}


def installation_of(hosts: Hosts, first: str, facts: Mapping[str, Facts]) -> Installation | None:
    """What is to be installed; None where the list does not ask for Corral, or the first control plane was not reached."""
    head = hosts.named(first)
    if hosts.corral is None or head is None or first not in facts:
        return None
    address = hosts.corral.address or hosts.kubernetes.endpoint or cluster_address(head, facts[first])
    return Installation(hosts, hosts.corral, address, _registry_of(hosts, first, facts))


def _registry_of(hosts: Hosts, first: str, facts: Mapping[str, Facts]) -> str:
    """Where the server reaches the registry; as it was told before where the registry's host was not reached."""
    if hosts.registry is None or hosts.registry.host in facts:
        return registry_endpoint(hosts, facts)
    try:
        told = yaml.safe_load(facts[first].files.get(files.VALUES_FILE, b""))["settings"][_REGISTRY_SETTING]
    except (yaml.YAMLError, KeyError, TypeError):
        return ""
    return str(told)


def needless_images(hosts: Hosts, host: Host) -> tuple[str, ...]:
    """The images of Corral that a host does not need: those of pods that never run there."""
    if hosts.corral is None:
        return ()
    chosen = hosts.monitoring
    programs = (chosen.prometheus, chosen.alertmanager) if chosen is not None and chosen.host != host.name else ()
    if hosts.corral.host == host.name:
        return programs
    # Beside each task Corral's own image moves its data, so workers need it; what runs on each node is of that image, too.
    everywhere = "worker" in host.roles or bool(hosts.corral.devices) or hosts.corral.node_agents
    return (hosts.corral.postgresql, *(() if everywhere else (hosts.corral.image,)), *programs)


def data_steps(asked: Installation, host: Host, own: Facts) -> Iterator[Step]:
    """The folders of the data, on the hosts that the list chooses for them."""
    folders = asked.data_of(host.name)
    if not folders:
        return
    text = MARK + "".join(f"{user} {path}\n" for path, user in folders.items())
    listed = files.file_step(own, files.DATA_FILE, text, done=True, unfinished=UNFINISHED_DATA)
    yield listed
    needed = listed.needed or UNFINISHED_DATA in own.unfinished
    above = " and ".join(dict.fromkeys(path.rpartition("/")[0] for path in folders))
    whose = "Corral's data" if host.name == asked.chosen.host else "the data of monitoring"
    title = f"make the folders of {whose} in {above}"
    there = f"the folders of {whose} are in {above}"
    yield Step("file", title if needed else there, needed, call=("make_data", files.DATA_FILE))


def chart_steps(asked: Installation, own: Facts, bundle: Bundle | None, *, able: bool) -> Iterator[Step]:
    """The portal's certificate, the chart's values and the chart, on the first control plane."""
    namespace = asked.chosen.namespace
    portal = Portal(asked.address, asked.chosen.certificate or "", asked.chosen.key or "")
    why = _why_certificate(asked, own)
    what = "the given certificate" if portal.certificate else f"a certificate of its own for {asked.address}"
    certificate = Step(
        "file", f"write {files.CERTIFICATE_FILE}: {what}" if why else f"the portal has {what}", bool(why),
        (why,) if why else (), (WRITE_CERTIFICATE, files.CERTIFICATE_FILE, namespace) if able else (), portal=portal,
    )  # fmt: skip
    yield certificate
    whole = " and ".join(("PostgreSQL", *asked.parts))
    title = f"install Corral with {whole} in the cluster {asked.hosts.cluster}, or bring it up to date"
    present = "Corral is there"
    if bundle is None or bundle.chart is None:
        there = files.VALUES_FILE in own.files and UNFINISHED_CORRAL not in own.unfinished
        yield Step("chart", present if there else title, not there)
        return
    values = files.file_step(own, files.VALUES_FILE, asked.values_text(bundle), done=able, unfinished=UNFINISHED_CORRAL)
    yield values
    needed = values.needed or UNFINISHED_CORRAL in own.unfinished or bool(bundle.absent_helm(own))
    sent = (bundle.chart,) if needed else ()
    agents = ("agents",) if asked.chosen.node_agents else ()
    yield Step(
        "chart", title if needed else present, needed, (asked.url,),
        ("install_corral", files.VALUES_FILE, namespace, *agents) if able else (), listing(sent), sent,
    )  # fmt: skip


def _why_certificate(asked: Installation, own: Facts) -> str:
    """Why the portal's certificate is to be written; "" where the one that is there is as wanted."""
    there = own.files.get(files.CERTIFICATE_FILE, b"").decode(errors="replace")
    if not there:
        return "there is none"
    if UNFINISHED_PORTAL in own.unfinished:
        return "it was begun and not ended"
    if asked.chosen.certificate:
        return (
            ""
            if first_certificate(asked.hosts.certificate).split() == first_certificate(there).split()
            else "it is another one"
        )
    said = _OWN.match(there)
    if said is None or said["address"] != asked.address:
        return f"it is not for {asked.address}"
    return "it ends within 30 days" if int(said["end"]) - own.time < _RENEW_BEFORE else ""


def own_line(address: str, end: float) -> str:
    """The first line of the file of a certificate of its own, which ends at that time in seconds since 1970."""
    return f"# Corral's own certificate for {address} until {end:.0f}\n"


def _folder(path: str) -> dict[str, Any]:
    return {"hostPath": {"path": path, "type": "Directory"}}


def _merged(own: Mapping[str, Any], further: Mapping[str, Any]) -> dict[str, Any]:
    whole = dict(own)
    for key, value in further.items():
        there = whole.get(key)
        whole[key] = _merged(there, value) if isinstance(there, dict) and isinstance(value, dict) else value
    return whole


def is_address(value: str) -> bool:
    """Whether a portal's address is an IP address rather than a name."""
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True
