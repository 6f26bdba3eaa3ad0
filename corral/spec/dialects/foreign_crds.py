"""Build and list the CustomResourceDefinitions of the dialects' object kinds."""

from __future__ import annotations

import json
from typing import Any, Final

import yaml

from corral.spec.crd import structural
from corral.spec.dialects.registry import dialects
from corral.spec.job_objects import ObjectKind
from corral.spec.object_status import ObjectCondition

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
FLAG: Final[Schema] = {"type": "boolean"}
KEPT: Final[Schema] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
"""An object of any content."""


def definitions() -> dict[str, Schema]:
    """The definition of each foreign kind, by the name that `corral crd` uses."""
    return {name: made for each in dialects() for name, made in each.definitions().items()}


def definition_files() -> dict[str, str]:
    """The definitions as files, by their paths in the documentation."""
    return {
        f"schema/{definition['metadata']['name']}.yaml": yaml.safe_dump(
            json.loads(json.dumps(definition)), sort_keys=False, width=120
        )
        for definition in definitions().values()
    }


def number(least: int, most: int | None = None) -> Schema:
    """The schema of a whole number within bounds, both included."""
    return {"type": "integer", "minimum": least, **({"maximum": most} if most is not None else {})}


def object_of(*needed: str, **properties: Schema) -> Schema:
    """The schema of an object with these properties; those in `needed` are required."""
    return {"type": "object", "properties": properties, **({"required": list(needed)} if needed else {})}


def added_fields() -> dict[str, Schema]:
    """The fields that Corral adds to a status: `jobId`, `server`, `phase`, `message`, `attempt` and others."""
    condition = structural(ObjectCondition)
    keys = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    conditions = {"type": "array", "items": condition, **keys}
    words = dict.fromkeys(("jobId", "server", "phase", "message"), TEXT)
    return {**words, "attempt": number(0), "observedGeneration": number(0), "conditions": conditions}


def definition_of(kind: ObjectKind, root: Schema, columns: tuple[tuple[str, str], ...], *, shorts: list[str]) -> Schema:
    """The definition of a kind: the schema of its objects, the columns that kubectl shows, and its short names."""
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
