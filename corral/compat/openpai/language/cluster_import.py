"""Convert the export of an OpenPAI cluster to documents and settings; everything left out becomes a note.

The result depends on the export alone. A server is only asked to accept it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from corral.compat.openpai.language.cluster_export import Export, group_of
from corral.spec.cluster import ClusterDocument
from corral.spec.configuration_file import Document
from corral.spec.errors import SpecError
from corral.spec.hived.configuration import is_bare_hived, load_hived
from corral.spec.hived.importer import documents_of
from corral.spec.queue import QueueDocument
from corral.spec.storage import StorageDocument
from corral.spec.validation_messages import problems_of
from corral.spec.yaml_source import Source

PUBLIC_SECRETS: Final = frozenset({"pai-secret", "HelloPAI", "hello"})
"""Token secrets in OpenPAI's own files, which anybody could sign with."""
SHORTEST_SECRET: Final = 12
_PUBLIC_PASSWORDS: Final = frozenset({"", "admin-password", "your_default_pai_admin_password"})
_DISCOVERY: Final = "/.well-known/openid-configuration"
_NOT_NEEDED: Final = frozenset(
    {"cluster", "database-controller", "device-plugin", "docker-cache", "dshuttle", "fluentd", "frameworkcontroller",
     "internal-storage", "k8s-dashboard", "log-manager", "node-exporter", "openpai-runtime", "postgresql", "pylon",
     "storage-manager", "watchdog", "webportal", "drivers", "cleaner", "hadoop-data-node", "hadoop-jobhistory",
     "yarn-frameworklauncher", "zookeeper", "grafana", "prometheus", "job-exporter", "prometheus-pushgateway"}
)  # fmt: skip
"""Services whose work Corral does itself, or leaves to the site."""


@dataclass(slots=True)
class Note:
    """An item that is not imported, or a task for the administrator."""

    kind: str
    name: str
    message: str


@dataclass(slots=True)
class Site:
    """The result of an import: documents, settings and notes."""

    documents: list[Document] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    """Corral's settings, by environment variable."""
    jwt_secret: str = ""
    issuer: str = ""
    """The OpenID Connect issuer of the users; "" without one."""
    notes: list[Note] = field(default_factory=list)


def site_of(export: Export, *, engine: str) -> Site:
    """The documents, settings and notes of an export; also adds the configuration's groups to the export."""
    site = Site()
    _services(export, site)
    _cluster(export, site, engine)
    site.documents += _storages(export, site)
    return site


def _cluster(export: Export, site: Site, engine: str) -> None:
    """The machines, from HiveD's configuration if there is one, else from the layout."""
    hived = export.hived or _of(export.services or {}, "hivedscheduler")
    bare = is_bare_hived(hived)
    if hived.get("config") or bare:
        try:
            loaded = load_hived(hived if bare else {"hivedscheduler": hived})
            site.documents += documents_of(loaded, engine=engine)
        except SpecError as error:
            site.notes.append(Note("hived", "hivedscheduler", f"HiveD's configuration cannot be taken: {error}"))
        else:
            _compare_with_layout(export, site, set(_addresses(loaded.physical_cluster.physical_cells)))
    elif export.layout is not None:
        _layout(export, site, engine)
    _yarn_clusters(export, site)


def _addresses(cells: Any) -> Iterator[str]:
    for cell in cells:
        if cell.cell_address:
            yield cell.cell_address
        yield from _addresses(cell.cell_children)


def _compare_with_layout(export: Export, site: Site, known: set[str]) -> None:
    for machine in machines_of(export):
        if not known & {machine.get("hostname"), machine.get("nodename"), machine.get("hostip")} and works(machine):
            name = str(machine.get("hostname"))
            site.notes.append(
                Note("machine", name, "The layout has it and HiveD's configuration has not; add it there.")
            )


def _layout(export: Export, site: Site, engine: str) -> None:
    """The workers of the layout, each with the resources of its machine type."""
    if engine != "local":
        site.notes.append(Note("layout", "layout.yaml", "The machines are those that the Kubernetes cluster has."))
        return
    skus = _of(export.layout or {}, "machine-sku")
    nodes: dict[str, dict[str, Any]] = {}
    for machine in machines_of(export):
        name = str(machine.get("hostname") or "")
        sku = skus.get(str(machine.get("machine-type")))
        if not works(machine):
            site.notes.append(Note("machine", name, "It is no worker, so it is no node here."))
        elif not isinstance(sku, Mapping):
            site.notes.append(
                Note("machine", name, f"Its machine-type {machine.get('machine-type')} is not described.")
            )
        else:
            nodes[name] = _node(sku, str(machine.get("machine-type")))
    if nodes:
        data = {"kind": "Cluster", "engine": engine, "nodes": nodes, "queues": {"default": {}}}
        _checked(site, ClusterDocument, data, "layout", "layout.yaml")


def _node(sku: Mapping[str, Any], name: str) -> dict[str, Any]:
    gpu, cpu, memory = (
        _of(sku, "gpu") or _of(sku, "computing-device"),
        _of(sku, "cpu"),
        sku.get("mem", sku.get("memory")),
    )
    node: dict[str, Any] = {"labels": {"openpai.corral.dev/machine-type": re.sub(r"[^A-Za-z0-9._-]", "-", name)[:63]}}
    if cpu.get("vcore"):
        node["cpu"] = str(cpu["vcore"])
    if memory:
        node["memory"] = memory_of(memory)
    if gpu.get("count"):
        model = str(gpu.get("model") or gpu.get("type") or "described")
        node["devices"] = {"count": gpu["count"], "model": re.sub(r"[^A-Za-z0-9._-]", "-", model)}
    return node


def memory_of(said: object) -> str:
    """The memory of a machine type: a number is in GiB, as OpenPAI has it."""
    return f"{said}Gi" if str(said).isdigit() else re.sub(r"B$", "", str(said))


def machines_of(export: Export) -> list[dict[str, Any]]:
    """The machines of the layout that are mappings."""
    machines = (export.layout or {}).get("machine-list")
    return [each for each in machines if isinstance(each, dict)] if isinstance(machines, list) else []


def works(machine: Mapping[str, Any]) -> bool:
    """Whether a machine of the layout runs jobs."""
    return str(machine.get("pai-worker", "")).lower() == "true"


def _yarn_clusters(export: Export, site: Site) -> None:
    """Virtual clusters of YARN releases; their capacities become weights."""
    known = _of(_of(export.services or {}, "hadoop-resource-manager"), "virtualClusters")
    for name, cluster in known.items():
        capacity = cluster.get("capacity") if isinstance(cluster, Mapping) else None
        weight = float(capacity) if isinstance(capacity, int | float) and capacity > 0 else 1.0
        _checked(site, QueueDocument, {"kind": "Queue", "name": name, "weight": weight}, "queue", str(name))


def _services(export: Export, site: Site) -> None:
    services = export.services or {}
    rest = _of(services, "rest-server")
    if rest:
        _rest_server(export, site, rest)
    signing = _of(services, "authentication")
    if signing:
        _authentication(export, site, signing)
    alerts = _of(services, "alert-manager")
    if alerts:
        site.notes.append(Note("service", "alert-manager", "Its receivers, rules and schedules are not taken over."))
    for name in services:
        known = {"rest-server", "authentication", "alert-manager", "hivedscheduler", "hadoop-resource-manager"}
        if name not in known | _NOT_NEEDED:
            site.notes.append(
                Note("service", str(name), "It is nothing that is known here; look whether it is needed.")
            )


def _rest_server(export: Export, site: Site, rest: Mapping[str, Any]) -> None:
    for key, variable in (
        ("rate-limit-api-per-min", "CORRAL_OPENPAI_CALLS_PER_MINUTE"),
        ("rate-limit-list-job-per-min", "CORRAL_OPENPAI_LISTS_PER_MINUTE"),
        ("rate-limit-submit-job-per-hour", "CORRAL_OPENPAI_SUBMITS_PER_HOUR"),
    ):
        if rest.get(key) is not None:
            site.settings[variable] = str(rest[key])
    secret = str(rest.get("jwt-secret") or "")
    if secret in PUBLIC_SECRETS or 0 < len(secret) < SHORTEST_SECRET:
        site.notes.append(
            Note("secret", "jwt-secret", "Everybody could sign with it (it is OpenPAI's own, or shorter than "
                 f"{SHORTEST_SECRET} characters), so it is not taken; tokens that were exported stay valid.")
        )  # fmt: skip
    else:
        site.jwt_secret = secret
    name, password = str(rest.get("default-pai-admin-username") or ""), rest.get("default-pai-admin-password")
    if name and name not in export.users:
        why = "has no account in the export; make one with: corral users add " + name + " --admin"
        if str(password or "") in _PUBLIC_PASSWORDS:
            why += " (the password in the file is OpenPAI's own)"
        site.notes.append(Note("user", name, f"The administrator of the configuration {why}"))
    if rest.get("debugging-reservation-seconds"):
        site.notes.append(
            Note(
                "setting", "debugging-reservation-seconds", "Nothing is reserved after a job has failed; its log stays."
            )
        )


def _authentication(export: Export, site: Site, signing: Mapping[str, Any]) -> None:
    manager = _of(signing, "group-manager")
    told = [manager.get("admin-group"), manager.get("default-group"), *(manager.get("grouplist") or [])]
    for each in told:
        group = group_of(each) if isinstance(each, Mapping) else None
        if group is not None:
            export.groups.setdefault(group.name, group)
    admins = _of(manager, "admin-group")
    if isinstance(admins.get("groupname"), str):
        export.groups[admins["groupname"]].admin = True
    if manager.get("group-data-source") == "winbind":
        site.notes.append(
            Note("service", "group-manager", "Groups do not come from winbind here; they stay as they are.")
        )
    if signing.get("OIDC") is True:
        _openid(export, site, _of(signing, str(signing.get("OIDC-type") or "AAD")), admins)


def _openid(export: Export, site: Site, told: Mapping[str, Any], admins: Mapping[str, Any]) -> None:
    well_known, client = str(told.get("wellKnownURL") or ""), str(told.get("clientID") or "")
    tenant = str(told.get("tenantID") or "")
    issuer = well_known.removesuffix(_DISCOVERY).replace("{tenantID}", tenant)
    if not urlsplit(issuer).hostname or not client:
        site.notes.append(Note("service", "authentication", "It names no wellKnownURL and clientID; set oidc_issuer."))
        return
    site.issuer = issuer
    site.settings |= {"CORRAL_OIDC_ISSUER": issuer, "CORRAL_OIDC_CLIENT_ID": client}
    if admins.get("externalName"):
        site.settings |= {"CORRAL_OIDC_GROUPS_CLAIM": "groups", "CORRAL_OIDC_ADMIN_GROUPS": str(admins["externalName"])}
    if told.get("clientSecret"):
        site.settings["CORRAL_OIDC_CLIENT_SECRET_FILE"] = "FILE"
        site.notes.append(
            Note(
                "setting",
                "oidc_client_secret_file",
                "Write AAD.clientSecret of the configuration into a file of mode 0600.",
            )
        )
    if any(user.password_hash for user in export.users.values()):
        site.notes.append(
            Note("user", "passwords", "People signed in with OpenID Connect: what stands for their passwords is no secret "
                 "and is not taken.")
        )  # fmt: skip
    for user in export.users.values():
        user.password_hash = ""


def _storages(export: Export, site: Site) -> Iterator[StorageDocument]:
    """A document for each claim, by the type of its volume, and for storages from the REST API without a claim."""
    for name, claim in export.claims.items():
        spec = _of(claim, "spec")
        volume = export.volumes.get(str(spec.get("volumeName", "")))
        labels = _of(_of(claim, "metadata"), "labels")
        data: dict[str, Any] = {"share": str(labels.get("share", "true")).lower() != "false"}
        if volume is None:
            site.notes.append(
                Note("storage", name, "Its PersistentVolume is not in the export, so it is a claim here.")
            )
            data |= {"type": "pvc", "claim": name}
        else:
            data |= _volume(name, _of(volume, "spec"))
        yield from _storage(site, name, data)
    for name, told in export.storages.items():
        if name not in export.claims:
            yield from _storage(site, name, _told_storage(name, told))


def _storage(site: Site, name: str, data: Mapping[str, Any]) -> Iterator[StorageDocument]:
    found = _validated(site, StorageDocument, {"kind": "Storage", "name": name, **data}, "storage", name)
    if found is not None:
        if found.secret_name:
            where = f"Storage {name} needs it in the namespace of the tasks, or credentialsFile be set."
            site.notes.append(Note("secret", found.secret_name, where))
        yield found


def _volume(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a Storage document for a PersistentVolume."""
    shared: dict[str, Any] = {"mountOptions": list(spec.get("mountOptions") or [])}
    modes = spec.get("accessModes")
    if isinstance(modes, list) and modes and all(mode == "ReadOnlyMany" for mode in modes):
        shared["readOnly"] = True
    flexible = _of(spec, "flexVolume")
    options = _of(flexible, "options")
    secret = {"secretName": _of(flexible, "secretRef")["name"]} if _of(flexible, "secretRef").get("name") else {}
    if spec.get("nfs"):
        nfs = _of(spec, "nfs")
        return {**shared, "type": "nfs", "server": nfs.get("server", ""), "path": nfs.get("path", "")}
    if spec.get("azureFile"):
        azure = _of(spec, "azureFile")
        return {**shared, "type": "azureFile", "shareName": azure.get("shareName", ""),
                "secretName": azure.get("secretName", "")}  # fmt: skip
    if str(flexible.get("driver", "")).endswith("blobfuse"):
        return {"type": "azureBlob", "containerName": options.get("container", ""), **secret,
                "mountOptions": _options(options)}  # fmt: skip
    if str(flexible.get("driver", "")).endswith("smb"):
        return {"type": "samba", "address": options.get("source", ""), **secret, "mountOptions": _options(options)}
    if spec.get("hostPath") or spec.get("local"):
        return {"type": "folder", "path": (_of(spec, "hostPath") or _of(spec, "local")).get("path", "")}
    csi = _of(spec, "csi")
    if csi:
        attributes = {str(key): str(value) for key, value in _of(csi, "volumeAttributes").items()}
        if "dshuttle" in str(csi.get("driver", "")):
            return {**shared, "type": "dshuttle", "attributes": attributes}
        return {**shared, "type": "other", "driver": str(csi.get("driver", "")), "attributes": attributes}
    return {"type": "pvc", "claim": name}


def _told_storage(name: str, told: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a Storage document for a storage in the REST API's form, without its passwords."""
    kind, data = told.get("type"), _of(told, "data")
    fields: Mapping[str, tuple[str, ...]] = {
        "nfs": ("server", "path"),
        "samba": ("address",),
        "azureFile": ("shareName", "accountName"),
        "azureBlob": ("containerName", "accountName"),
    }
    shared: dict[str, Any] = {"share": told.get("share") is not False, "readOnly": told.get("readOnly") is True}
    if kind not in fields:
        return {**shared, "type": "pvc", "claim": name}
    known = {key: data[key] for key in fields[str(kind)] if data.get(key)}
    options = told.get("mountOptions")
    secret = {"secretName": told["secretName"]} if told.get("secretName") else {}
    return {**shared, "type": kind, **known, **secret, "mountOptions": options if isinstance(options, list) else []}


def _options(options: Mapping[str, Any]) -> list[str]:
    return [each for each in str(options.get("mountoptions") or "").split(",") if each]


def _of(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The mapping under a key; {} when there is none."""
    found = data.get(key)
    return found if isinstance(found, dict) else {}


def _checked(site: Site, model: type[Any], data: Mapping[str, Any], kind: str, name: str) -> None:
    found = _validated(site, model, data, kind, name)
    if found is not None:
        site.documents.append(found)


def _validated(site: Site, model: type[BaseModel], data: Mapping[str, Any], kind: str, name: str) -> Any:
    """The validated document; None, and a note, when it is invalid here."""
    try:
        return model.model_validate(dict(data), by_alias=True, by_name=False)
    except ValidationError as error:
        found = SpecError(problems_of(error, model, Source(name, dict(data))))
        site.notes.append(Note(kind, name, f"It cannot be taken: {found.message.splitlines()[0]}"))
        return None
