"""The registry of the cluster's own: its steps on the node that runs it, and those by which every node asks it first.

Each registry whose images it has is a folder of repositories in it, so that images of one name do not meet. Nodes prove
themselves by a certificate, and none of them can write: it takes images from its own host alone, while it is filled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from corral.deploy.checks.between_hosts import cluster_address, registry_endpoint
from corral.deploy.checks.facts import Facts
from corral.deploy.checks.ours import MARK, REGISTRY_UNIT_FILE
from corral.deploy.checks.port_rules import ports_of_parts, purpose_of
from corral.deploy.hosts.document import Registry
from corral.deploy.hosts.reader import Host, Hosts
from corral.deploy.steps import files, installation, kubeadm
from corral.deploy.steps.bundle import Bundle, listing
from corral.deploy.steps.step import Joining, Portal, Step

PACKAGE: Final = "docker-registry"
SERVICE: Final = "corral-registry"
MAKE_KEYS, START, TRUST, FILL = "make_registry_keys", "start_registry", "trust_registry", "fill_registry"
"""The functions of `registry.sh`: the first is sent keys, and the third the certificates of another host."""
CONF: Final = "/etc/corral-registry"
CONFIG_FILE, AUTHORITY_FILE, SERVER_FILE = f"{CONF}/config.yml", f"{CONF}/ca.crt", f"{CONF}/tls.crt"
CLIENT_FILE: Final = f"{CONF}/client.pem"
"""The certificate of nodes with its key; a host tells its SHA-256 alone."""
UNFINISHED_KEYS, UNFINISHED_TRUST = "registry-keys", "registry-trust"
"""What a host keeps a mark of while it is begun and not done, besides the name of the service."""
_OWN: Final = re.compile(r"# Corral's own certificate for (?P<address>\S{1,300}) until (?P<end>\d{1,11})\n")
_RENEW_BEFORE: Final = 30 * 86400
"""Seconds before its end at which the certificate is made again."""
UNIT: Final = f"""{MARK}[Unit]
Description=Registry of the cluster's own
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
User={PACKAGE}
Group={PACKAGE}
ExecStart=/usr/bin/docker-registry serve {CONFIG_FILE}
Restart=always
RestartSec=5
NoNewPrivileges=yes
ProtectSystem=full
LimitNOFILE=65536

[Install]
WantedBy=multi-user.target
"""


def runs_on(hosts: Hosts, host: Host) -> bool:
    """Whether a host runs the registry."""
    return hosts.registry is not None and hosts.registry.host == host.name


def bars(hosts: Hosts, host: Host) -> Iterator[str]:
    """What keeps the registry from being installed on a host."""
    if hosts.registry is None or not runs_on(hosts, host):
        return
    port = hosts.registry.port
    taken = purpose_of(port) or ports_of_parts(hosts).get(port, "")
    if taken:
        yield f"the registry's port {port} is that of {taken}: choose another one (registry.port)"


def notes(hosts: Hosts, host: Host, facts: Mapping[str, Facts]) -> Iterator[str]:
    """What a host is not told of, as the registry's host was not reached."""
    if hosts.registry is not None and host.in_kubernetes and hosts.registry.host not in facts:
        yield f"{hosts.registry.host}, which has the registry, was not reached: how this host asks it is left as it is."


def own_steps(hosts: Hosts, host: Host, own: Facts, bundle: Bundle | None, *, able: bool) -> Iterator[Step]:
    """The steps that run the registry on its host and fill it, in order."""
    if hosts.registry is None or not runs_on(hosts, host):
        return
    address = cluster_address(host, own)
    why = _why_keys(address, own)
    title = f"make an authority, and certificates of the registry at {address} and of nodes"
    yield Step(
        "registry", title if why else "the registry has its certificates", bool(why), (why,) if why else (),
        (MAKE_KEYS,) if able else (), portal=Portal(address, "", ""),
    )  # fmt: skip
    changed = [
        files.file_step(own, path, text, done=able, unfinished=SERVICE)
        for path, text in (
            (CONFIG_FILE, _config_text(hosts.registry, hosts.registry_folder, address)), (REGISTRY_UNIT_FILE, UNIT),
        )
    ]  # fmt: skip
    yield from changed
    known = own.services.get(SERVICE)
    good = known is not None and known.starts == "enabled" and known.running == "active"
    needed = bool(why) or not good or SERVICE in own.unfinished or any(step.needed for step in changed)
    title = f"enable and start {SERVICE}" if needed else f"{SERVICE} is enabled and runs"
    yield Step("service", title, needed, call=(START, hosts.registry_folder) if able else ())
    if bundle is not None:
        yield _fill(hosts, host, own, bundle, able=able)


def _why_keys(address: str, own: Facts) -> str:
    """Why certificates are to be made; "" where those that are there are as wanted."""
    there = own.files.get(SERVER_FILE, b"").decode(errors="replace")
    if not there or AUTHORITY_FILE not in own.files or CLIENT_FILE not in own.programs:
        return "there are none"
    if UNFINISHED_KEYS in own.unfinished:
        return "it was begun and not ended"
    said = _OWN.match(there)
    if said is None or said["address"] != address:
        return f"they are not for {address}"
    return "they end within 30 days" if int(said["end"]) - own.time < _RENEW_BEFORE else ""


def _config_text(chosen: Registry, folder: str, address: str) -> str:
    at = f"[{address}]" if ":" in address else address
    return f"""{MARK}version: 0.1
log: {{level: warn, accesslog: {{disabled: true}}}}
storage:
  filesystem:
    rootdirectory: {json.dumps(folder, ensure_ascii=False)}
  maintenance:
    readonly: {{enabled: true}}
http:
  addr: "{at}:{chosen.port}"
  tls:
    certificate: {SERVER_FILE}
    key: {CONF}/tls.key
    clientcas: [{AUTHORITY_FILE}]
    minimumtls: tls1.2
"""


def _fill(hosts: Hosts, host: Host, own: Facts, bundle: Bundle, *, able: bool) -> Step:
    """The step that gives the registry those images of the bundle that it has not, or with another digest."""
    absent = {name: digest for name, digest in bundle.images.items() if own.held.get(repository_of(name)) != digest}
    if not absent:
        return Step("registry", "the registry has all images", False)
    # The host imported the others before this step.
    lacking = bundle.unneeded_images(
        control_plane=kubeadm.is_control_plane(host), needless=installation.needless_images(hosts, host)
    )
    sent = tuple(
        each.file for each in bundle.archives if any(name in lacking and name in absent for name in each.images)
    )
    words = tuple(f"{name} {repository_of(name)} {digest}" for name, digest in sorted(absent.items()))
    title = f"fill the registry with {len(absent)} images" if len(absent) > 1 else f"give the registry {min(absent)}"
    call = (FILL, "sent" if sent else "none", CONFIG_FILE, hosts.registry_folder, *words) if able else ()
    return Step("registry", title, True, tuple(sorted(absent)), call, listing(sent) if sent else b"", sent)


def mirror_steps(
    hosts: Hosts, host: Host, facts: Mapping[str, Facts], bundle: Bundle | None, *, able: bool
) -> Iterator[Step]:  # fmt: skip
    """The steps by which a node asks the registry before any other one."""
    chosen = hosts.registry
    head = hosts.named(chosen.host) if chosen is not None else None
    if chosen is None or head is None or head.name not in facts:
        return
    own, there = facts[host.name], facts[head.name]
    address = cluster_address(head, there)
    if host.name != head.name:
        running = there.services.get(SERVICE)
        same = (
            own.files.get(AUTHORITY_FILE, b"") == there.files.get(AUTHORITY_FILE)
            and own.programs.get(CLIENT_FILE) == there.programs.get(CLIENT_FILE)
            and UNFINISHED_TRUST not in own.unfinished
        )
        why = _why_keys(address, there)
        trusts = same and not why
        title = f"trust the registry of {head.name}"
        yield Step(
            "registry", f"it trusts the registry of {head.name}" if trusts else title, not trusts,
            (f"those of {head.name} are made again first: {why}",) if same and why else (),
            call=(TRUST,) if able else (),
            joining=Joining(head.name, running is not None and running.running == "active", "", address),
        )  # fmt: skip
    for name in _mirrored(chosen, own, bundle):
        text = _hosts_text(f"https://{registry_endpoint(hosts, facts)}/v2/{_folder_of(name)}")
        yield files.file_step(own, f"{files.MIRRORS_FOLDER}/{name}/hosts.toml", text, done=able)


def _mirrored(chosen: Registry, own: Facts, bundle: Bundle | None) -> list[str]:
    """The registries that are asked after this one: those of the list and of the bundle, and those of the `up` before."""
    folder = f"{files.MIRRORS_FOLDER}/"
    known = (
        path.removeprefix(folder).removesuffix("/hosts.toml")
        for path, text in own.files.items()
        if path.startswith(folder) and text.startswith(MARK.encode())
    )
    images = bundle.images if bundle is not None else ()
    return sorted({*chosen.mirrors, *known, *(Name.of(each).registry for each in images)})


def _hosts_text(url: str) -> str:
    """What containerd reads of a registry: it asks this one first, and the registry itself for what that has not."""
    return f"""{MARK}[host."{url}"]
capabilities = ["pull", "resolve"]
override_path = true
ca = "{AUTHORITY_FILE}"
client = "{CLIENT_FILE}"
"""


@dataclass(frozen=True, slots=True)
class Name:
    """The name of an image in its parts, as containerd understands it."""

    registry: str
    path: str
    tag: str

    @classmethod
    def of(cls, image: str) -> Name:
        """Those of an image's name."""
        first, slash, rest = image.partition("/")
        if not slash or not (set(first) & {".", ":"} or first == "localhost"):
            first, rest = "docker.io", image if slash else f"library/{image}"
        path, colon, tag = rest.rpartition(":")
        return cls(first, path, tag) if colon else cls(first, rest, "latest")


def repository_of(image: str) -> str:
    """The repository of the registry that has an image, with its tag."""
    name = Name.of(image)
    return f"{_folder_of(name.registry)}/{name.path}:{name.tag}"


def _folder_of(registry: str) -> str:
    """The first part of the repositories of a registry's images; a repository's name has no colon."""
    return registry.replace(":", "_")
