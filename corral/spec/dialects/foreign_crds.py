"""CustomResourceDefinitions of the object kinds of Alnair and FrameworkController.

Alnair's own definition uses an API that Kubernetes no longer serves (v1beta1). FrameworkController's is written by its
controller at start and lets everybody write the status; this one does not. Fields and bounds are theirs. Corral adds
`jobId`, `server`, `phase`, `message`, `attempt`, `observedGeneration` and `conditions` to the status.
"""

from __future__ import annotations

import json
from typing import Any, Final

import yaml

from corral.compat.alnair.language import job as alnair
from corral.compat.alnair.language.job_object import AlnairKind
from corral.compat.frameworkcontroller.language import framework
from corral.compat.frameworkcontroller.language.framework_object import FrameworkKind
from corral.spec.crd import structural
from corral.spec.job_objects import ObjectKind
from corral.spec.job_parts import MAX_REPLICAS
from corral.spec.object_status import ObjectCondition

Schema = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_FLAG: Final[Schema] = {"type": "boolean"}
_KEPT: Final[Schema] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definitions() -> dict[str, Schema]:
    """The definition of each foreign kind, by the name that `corral crd` uses."""
    return {"alnair": _alnair(), "framework": _framework()}


def definition_files() -> dict[str, str]:
    """The definitions as files, by their paths in the documentation."""
    return {
        f"schema/{definition['metadata']['name']}.yaml": yaml.safe_dump(
            json.loads(json.dumps(definition)), sort_keys=False, width=120
        )
        for definition in definitions().values()
    }


def _number(least: int, most: int | None = None) -> Schema:
    return {"type": "integer", "minimum": least, **({"maximum": most} if most is not None else {})}


def _object(*needed: str, **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, **({"required": list(needed)} if needed else {})}


def _added() -> dict[str, Schema]:
    """The fields that Corral adds to a status."""
    condition = structural(ObjectCondition)
    keys = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    conditions = {"type": "array", "items": condition, **keys}
    words = dict.fromkeys(("jobId", "server", "phase", "message"), _TEXT)
    return {**words, "attempt": _number(0), "observedGeneration": _number(0), "conditions": conditions}


def _alnair() -> Schema:
    work = _object(
        "image", "unifiedArgs", image=_TEXT, unifiedArgs={"type": "array", "items": _TEXT}, reschedulable=_FLAG
    )
    targets = {
        "type": "object",
        "additionalProperties": {"type": "integer"},
        "x-kubernetes-map-type": "atomic",
    }
    counts = _object(minReplicas=_number(0), maxReplicas=_number(0), targetReplicas=targets)
    status = _object(jobStatus=_TEXT, itersCompleted={"type": "integer"}, itersTotal={"type": "integer"}, **_added())
    root = _object(
        jobType={"type": "string", "enum": list(alnair.JOB_TYPES)},
        spec=_object(jobSpec=work, replicaSpec=counts, reschedulable=_FLAG),
        status=status,
    )
    columns = (("Type", ".jobType"), ("Status", ".status.jobStatus"), ("Job", ".status.jobId"))
    return _definition(AlnairKind(), root, columns, shorts=["ujob"])


def _framework() -> Schema:
    policy = _object(fancyRetryPolicy=_FLAG, maxRetryCount=_number(-2))
    completion = _object(minFailedTaskCount=_number(-1), minSucceededTaskCount=_number(-1))
    named = {"type": "string", "pattern": "^[a-z0-9]{1,63}$"}
    task = _object(retryPolicy=policy, podGracefulDeletionTimeoutSec={**_number(0), "nullable": True}, pod=_KEPT)
    role = _object(
        name=named, taskNumber=_number(0, MAX_REPLICAS), frameworkAttemptCompletionPolicy=completion, task=task
    )
    spec = _object(
        description=_TEXT,
        executionType={"type": "string", "enum": [framework.CREATE, framework.START, framework.STOP]},
        retryPolicy=policy,
        taskRoles={"type": "array", "items": role},
    )
    status = {**_object(**_added()), "nullable": True, "x-kubernetes-preserve-unknown-fields": True}
    root = _object(metadata=_object(name=named), spec=spec, status=status)
    columns = (("Execution", ".spec.executionType"), ("State", ".status.state"), ("Job", ".status.jobId"))
    return _definition(FrameworkKind(), root, columns, shorts=[])


def _definition(kind: ObjectKind, root: Schema, columns: tuple[tuple[str, str], ...], *, shorts: list[str]) -> Schema:
    shown = [{"name": name, "type": "string", "jsonPath": path} for name, path in columns]
    shown.append({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"})
    version: Schema = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": root},
        "additionalPrinterColumns": shown,
    }
    if kind.status_subresource:
        version["subresources"] = {"status": {}}
    names: Schema = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.kind.lower(),
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.title, "labels": {"app.kubernetes.io/part-of": "corral"}},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": names | ({"shortNames": shorts} if shorts else {}),
            "versions": [version],
        },
    }
