"""Generate the CustomResourceDefinition of `UnifiedJob` objects from the models that read them.

Kubernetes accepts *structural* schemas only: every field has one type, there are no references, and maps have one type
of value and no rule for their keys. No defaults are set here: objects stay as their authors wrote them, and the model
completes them. Constraints that a structural schema cannot express are CEL rules where a cluster can check them at
once; the bridge reports the rest as a condition. Source: Kubernetes' apiextensions/v1 ("Specifying a structural
schema").
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

import yaml
from pydantic import BaseModel

from corral.spec.job import KIND, UnifiedJob
from corral.spec.job_objects import UnifiedJobKind
from corral.spec.object_status import ObjectStatus

SCHEMA_ANNOTATION: Final = "corral.dev/schema"
"""Annotation with the digest of an installed definition's schema."""
Schema = dict[str, Any]

_KEPT: Final = frozenset(
    {
        "type", "description", "enum", "items", "maximum", "minimum", "maxItems", "minItems", "maxLength", "minLength",
        "maxProperties", "minProperties", "pattern", "properties", "required", "x-kubernetes-preserve-unknown-fields",
    }
)  # fmt: skip
_COUNTED: Final = (
    "(has(self.replicaSpec) && has(self.replicaSpec.role) && size(self.replicaSpec.role) > 0 "
    "? self.replicaSpec.role : self.roles[0].name)"
)
_RULES: Final[dict[tuple[str, ...], tuple[tuple[str, str], ...]]] = {
    (): (
        (
            "self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",
            "a job's name is a DNS label of at most 63 characters",
        ),
    ),
    ("spec",): (
        (f"self.roles.exists(role, role.name == {_COUNTED})", "replicaSpec.role names no role of the job"),
        (
            f"self.roles.all(role, (has(role.replicas) && role.replicas > 0) != (role.name == {_COUNTED}))",
            "every role says its replicas, except for the one that replicaSpec counts (the first one if unsaid)",
        ),
        (
            "(has(self.jobType) ? self.jobType : 'shell') == (has(oldSelf.jobType) ? oldSelf.jobType : 'shell')",
            "a job's type cannot change; delete the object and apply it again",
        ),
    ),
    ("spec", "replicaSpec"): (
        (
            "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
            "minReplicas is more than maxReplicas",
        ),
        (
            "!has(self.replicas) || !has(self.minReplicas) || self.minReplicas <= self.replicas",
            "replicas is less than minReplicas",
        ),
        (
            "!has(self.replicas) || !has(self.maxReplicas) || self.replicas <= self.maxReplicas",
            "replicas is more than maxReplicas",
        ),
    ),
    ("spec", "roles", "items", "secrets", "items"): (
        (
            "(has(self.env) && size(self.env) > 0) != (has(self.file) && size(self.file) > 0)",
            "a secret has either env (a variable's name) or file (a file's name)",
        ),
    ),
}
_LISTS: Final[dict[tuple[str, ...], tuple[str, ...]]] = {
    ("spec", "roles"): ("name",),
    ("spec", "roles", "items", "ports"): ("name",),
    ("status", "conditions"): ("type",),
    ("status", "roles"): ("name",),
}
"""Lists keyed by a field, so that several field managers may each own some entries."""
_WHOLE: Final = (
    ("spec", "replicaSpec", "targetReplicas"),
    ("status", "placements"),
    ("status", "external", "replicas"),
)
"""Maps that one field manager owns as a whole."""
_COLUMNS: Final = (
    ("State", "string", ".status.phase", 0),
    ("Queue", "string", ".spec.queue", 0),
    ("Type", "string", ".spec.jobType", 0),
    ("Wanted", "integer", ".spec.replicaSpec.replicas", 0),
    ("Placed", "integer", ".status.replicas", 0),
    ("Devices", "number", ".status.devices", 0),
    ("Job", "string", ".status.jobId", 1),
    ("Message", "string", ".status.message", 1),
    ("Age", "date", ".metadata.creationTimestamp", 0),
)


def unifiedjob_crd() -> dict[str, Any]:
    """The CustomResourceDefinition of `UnifiedJob` objects."""
    kind = UnifiedJobKind()
    schema = object_schema()
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicaSpec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [
            {"name": name, "type": type_, "jsonPath": path, **({"priority": wide} if wide else {})}
            for name, type_, path, wide in _COLUMNS
        ],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": kind.title,
            "annotations": {SCHEMA_ANNOTATION: schema_digest()},
            "labels": {"app.kubernetes.io/part-of": "corral"},
        },
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": kind.plural,
                "singular": "unifiedjob",
                "shortNames": ["cjob"],
                "categories": ["corral"],
            },
            "versions": [version],
        },
    }


def crd_text() -> str:
    """The definition as YAML text."""
    return yaml.safe_dump(unifiedjob_crd(), sort_keys=False, allow_unicode=True, width=120)


def object_schema() -> Schema:
    """The structural schema of a whole object."""
    spec, status = structural(UnifiedJob)["properties"]["spec"], structural(ObjectStatus)
    root: Schema = {
        "type": "object",
        "description": "A job of Corral: the canonical document as an object of the cluster.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
    }
    for path, rules in _RULES.items():
        _at(root, path)["x-kubernetes-validations"] = [{"rule": rule, "message": message} for rule, message in rules]
    for path, keys in _LISTS.items():
        _at(root, path).update({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)})
    for path in _WHOLE:
        _at(root, path)["x-kubernetes-map-type"] = "atomic"
    return root


def schema_digest() -> str:
    """The first 16 hex characters of the schema's SHA-256."""
    return hashlib.sha256(json.dumps(object_schema(), sort_keys=True).encode()).hexdigest()[:16]


def structural(model: type[BaseModel]) -> Schema:
    """The structural schema of a model: references inlined, each map with one type of value."""
    root = model.model_json_schema(by_alias=True, mode="validation")
    return _inlined(root, root.get("$defs", {}))


def _inlined(part: Schema, definitions: Schema) -> Schema:
    if "$ref" in part:
        part = {**definitions[part["$ref"].rsplit("/", 1)[-1]], **part}
    shown: Schema = {key: value for key, value in part.items() if key in _KEPT}
    if "const" in part:
        shown["enum"] = [part["const"]]
    if "properties" in shown:
        shown["properties"] = {name: _inlined(each, definitions) for name, each in shown["properties"].items()}
    if "items" in shown:
        shown["items"] = _inlined(shown["items"], definitions)
    values = next(iter(part.get("patternProperties", {}).values()), part.get("additionalProperties"))
    if isinstance(values, dict):
        shown["additionalProperties"] = _inlined(values, definitions)
    return shown


def _at(root: Schema, path: tuple[str, ...]) -> Schema:
    for name in path:
        root = root["items"] if name == "items" else root["properties"][name]
    return root
