"""Job documents and configuration documents without names, and without what the scheduler does not read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from corral.control.core.configuration import Configured
from corral.control.journal.anonymous.clusters import anonymous_cluster
from corral.control.journal.anonymous.names import Names
from corral.control.journal.records import DocumentsRead
from corral.frameworks import port_counts
from corral.kernel.errors import InvalidInput
from corral.model.configuration import Configuration, canonical, configuration_of
from corral.model.inventory import ELSEWHERE
from corral.model.queue_specs import queue_spec
from corral.model.queues import CellQuota
from corral.model.request_builder import volume_claims
from corral.spec.cluster import ClusterDocument
from corral.spec.configuration_file import Document
from corral.spec.expanded_machines import TypeLevel
from corral.spec.job import UnifiedJob
from corral.spec.placement_rules import Devices, NodeRules
from corral.spec.queue import QueueCells, QueueDocument
from corral.spec.role import Role

_COMMAND: Final = "true"
"""The command of roles that have one."""
_KEPT_OF_JOB: Final = (
    "priority", "preemptible", "lazyPreemption", "gang", "network", "retryPolicy", "badHardware", "exitTable",
    "array", "maxDurationSeconds", "deadlineSeconds", "scaling",
)  # fmt: skip
"""Fields that hold numbers and words of Corral's language alone."""
_KEPT_OF_ROLE: Final = (
    "replicas", "processesPerReplica", "shm", "completion", "retryPolicy", "maxTaskSeconds",
)  # fmt: skip
_AMOUNTS_OF_QUEUE: Final = (
    "guaranteed",
    "deserved",
    "limit",
    "borrowingLimit",
    "lendingLimit",
    "userLimit",
    "groupLimit",
)
_KEPT_OF_QUEUE: Final = (
    "weight", "minRuntimeSeconds", "gracePeriodSeconds", "preemption", "halfLifeSeconds", "maxPriority", "closed",
    "membersOnly",
)  # fmt: skip


# ---- jobs


def anonymous_job(names: Names, text: str) -> str:
    """The canonical text of a job document with new names, and with nothing that only a launch reads.

    Raises InvalidInput for a text that is no canonical document.
    """
    try:
        job = UnifiedJob.model_validate_json(text)
        made = UnifiedJob.model_validate(_job(names, job))
        return _with_ports(job, made).to_json()
    except ValidationError:
        message = "A job document of the journal cannot be read by this Corral; export it without --anonymise."
        raise InvalidInput("broken-journal-job-document", message) from None


def _job(names: Names, job: UnifiedJob) -> dict[str, Any]:
    spec, said = job.spec, job.spec.model_dump(mode="json", by_alias=True)
    count = {name: value for name, value in said["replicaSpec"].items() if name.endswith("eplicas")}
    made: dict[str, Any] = {name: said[name] for name in _KEPT_OF_JOB}
    made |= {
        "jobType": names.framework(spec.job_type),
        "queue": names.queue(spec.queue),
        "pinnedCell": names.pinned_cell(spec.pinned_cell),
        "topology": _topology(names, said["topology"]),
        "speeds": {names.model(model): speed for model, speed in spec.speeds.items()},
        "nodes": _rules(names, spec.nodes),
        "sharing": said["sharing"] | {"antiAffinity": {
            "tags": [names.tag(tag) for tag in spec.sharing.anti_affinity.tags],
            "level": names.level(spec.sharing.anti_affinity.level),
        }},
        "tags": [names.tag(tag) for tag in spec.tags],
        "dependsOn": [{"job": names.named_job(each.job), "condition": each.condition} for each in spec.depends_on],
        "checkpoint": {"signal": spec.checkpoint.signal, "graceSeconds": spec.checkpoint.grace_seconds},
        "report": {"enabled": spec.report.enabled, "steps": spec.report.steps},
        "replicaSpec": count | {
            "role": names.role(spec.replica_spec.role),
            "targetReplicas": {names.node(node): most for node, most in spec.replica_spec.target_replicas.items()},
        },
        "roles": [_role(names, job, role) for role in spec.roles],
    }  # fmt: skip
    return {"metadata": {"name": names.job(job.name)}, "spec": made}


def _role(names: Names, job: UnifiedJob, role: Role) -> dict[str, Any]:
    said = role.model_dump(mode="json", by_alias=True)
    resources = said["resources"]
    made: dict[str, Any] = {name: said[name] for name in _KEPT_OF_ROLE}
    claims = [
        {"key": names.label(f"{ELSEWHERE}{claim}"), "operator": "DoesNotExist"}
        for claim in volume_claims(job.spec, role)
    ]
    rules = _rules(names, role.nodes)
    return made | {
        "name": names.role(role.name),
        "command": [_COMMAND] if role.command else [],
        "resources": resources | {
            "other": {names.resource(name): amount for name, amount in role.resources.other.items()},
            "devices": _devices(names, role.resources.devices, resources["devices"]),
        },
        "topology": _topology(names, said["topology"]),
        "nodeSelector": {names.label(key): names.value(key, value) for key, value in role.node_selector.items()},
        "nodes": rules | {"expressions": rules["expressions"] + claims},
        "pinnedCell": names.pinned_cell(role.pinned_cell),
        "affinityGroup": names.affinity(role.affinity_group),
        "kubernetes": {"forceAfterSeconds": role.kubernetes.force_after_seconds},
    }  # fmt: skip


def _devices(names: Names, devices: Devices, said: Mapping[str, Any]) -> dict[str, Any]:
    return dict(said) | {
        "kind": names.kind(devices.kind),
        "model": names.model(devices.model),
        "ids": [names.device(each) for each in devices.ids],
    }


def _topology(names: Names, said: Mapping[str, Any]) -> dict[str, Any]:
    return dict(said) | {
        "required": names.level(said["required"]),
        "preferred": names.level(said["preferred"]),
        "group": said["group"] | {"required": names.level(said["group"]["required"])},
        "spread": said["spread"] | {"level": names.level(said["spread"]["level"])},
    }


def _rules(names: Names, rules: NodeRules) -> dict[str, Any]:
    for each in rules.expressions:
        if each.operator in ("Gt", "Lt"):
            names.compares(each.key)
    return {
        "include": [names.node(node) for node in rules.include],
        "exclude": [names.node(node) for node in rules.exclude],
        "expressions": [
            {
                "key": names.label(each.key),
                "operator": each.operator,
                "values": [names.value(each.key, value) for value in each.values],
            }
            for each in rules.expressions
        ],
        "tolerations": [
            each.model_dump(mode="json", by_alias=True)
            | {"key": names.label(each.key), "value": names.value(each.key, each.value)}
            for each in rules.tolerations
        ],
    }


def _with_ports(job: UnifiedJob, made: UnifiedJob) -> UnifiedJob:
    """The made document with as many ports in each role as the original needs, its framework's included."""
    own, needed = port_counts(made), port_counts(job)
    roles = []
    for role, now in zip(job.spec.roles, made.spec.roles, strict=True):
        more = needed.get(role.name, 0) + sum(port.count for port in role.ports) - own.get(now.name, 0)
        ports = {"ports": [{"name": "port", "count": more}]} if more > 0 else {}
        roles.append(now.model_dump(mode="json", by_alias=True) | ports)
    said = made.to_document()
    return UnifiedJob.model_validate(said | {"spec": said["spec"] | {"roles": roles}})


# ---- the configuration


def anonymous_documents(names: Names, found: Configured) -> DocumentsRead:
    """The queues and the policy of a configuration, with new names, and the engines that documents describe.

    Cluster documents are left out, as the machines are those that engines reported, unless queues own pinned cells or
    the preset is `hived`: then they have their cells. Storages are left out. Raises InvalidInput where cells under new
    names are not the same.
    """
    now = found.now
    hived = now.policy is not None and now.policy.preset == "hived"
    clusters: list[ClusterDocument] = []
    if hived or any(queue.pinned_cells for queue in now.queues.values()):
        clusters = [anonymous_cluster(names, each) for _, each in sorted(now.clusters.items()) if each.cells]
    types = {name: level for _, each in sorted(now.clusters.items()) for name, level in each.machines.types.items()}
    queues = [_queue(names, queue, types, keeps_types=bool(clusters)) for queue in now.queues.values()]
    documents: list[Document] = [*clusters, *queues]
    if now.policy is not None:
        documents.append(now.policy)
    if clusters:
        _check(names, now, configuration_of(documents))
    following = sorted(names.engine(engine) for engine in found.following)
    return DocumentsRead(tuple(map(canonical, documents)), now.change, tuple(following))


def _check(names: Names, now: Configuration, made: Configuration) -> None:
    """Check that queues own the same cells; raises InvalidInput."""
    specs = {spec.name: spec for spec in made.queue_specs()}
    for spec in now.queue_specs():
        own = specs[names.queue(spec.name)]
        cells = tuple(
            CellQuota(names.level(each.level), each.count, names.model(each.model), names.chain(each.chain))
            for each in spec.cells
        )
        pinned = tuple(names.cell_path(each) if "|" in each else names.pinned_cell(each) for each in spec.pinned_cells)
        if (own.cells, own.pinned_cells) != (cells, pinned):
            message = (
                f"The cells of queue {spec.name} cannot be made anonymous: several types of cells that describe one node "
                "have the same level; export the journal as it is."
            )
            raise InvalidInput("not-to-be-anonymised", message)


def _queue(names: Names, queue: QueueDocument, types: Mapping[str, TypeLevel], *, keeps_types: bool) -> QueueDocument:
    said = queue.to_document()
    made: dict[str, Any] = {name: said[name] for name in _KEPT_OF_QUEUE}
    made |= {name: _amounts(names, said[name]) for name in _AMOUNTS_OF_QUEUE}
    limits = said["managerLimits"]
    made["managerLimits"] = {name: _amounts(names, limits[name]) for name in limits}
    made["cells"] = [
        _typed(names, cells) if keeps_types and cells.cell_type else _levelled(names, quota)
        for cells, quota in zip(queue.cells, queue_spec(queue, types).cells, strict=True)
    ]
    made["pinnedCells"] = [names.pinned_cell(each) for each in queue.pinned_cells]
    made["name"], made["parent"] = names.queue(queue.name), names.queue(queue.parent)
    return QueueDocument.model_validate(made)


def _typed(names: Names, cells: QueueCells) -> dict[str, Any]:
    """Cells of a type, whose path may name those above it."""
    path = ".".join(map(names.cell_type, cells.cell_type.split(".")))
    return {"cellType": path, "model": names.model(cells.model), "count": cells.count}


def _levelled(names: Names, quota: CellQuota) -> dict[str, Any]:
    """Cells of a level."""
    path = ".".join(filter(None, (names.chain(quota.chain), names.level(quota.level))))
    return {"level": path, "model": names.model(quota.model), "count": quota.count}


def _amounts(names: Names, amounts: Mapping[str, str]) -> dict[str, str]:
    return {names.resource(name): amount for name, amount in amounts.items()}
