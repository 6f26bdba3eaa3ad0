"""Generate JSON schemas and reference pages of all documents from their models.

Editors complete and check job files with the published schema. `docs/generate.py` writes the files of `generated`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel

from corral.spec.cluster import ClusterDocument
from corral.spec.crd import crd_text
from corral.spec.devices_document import DevicesDocument
from corral.spec.dialects.foreign_crds import definition_files
from corral.spec.job import UnifiedJob
from corral.spec.policy import PolicyDocument
from corral.spec.prices import PricesDocument
from corral.spec.queue import QueueDocument
from corral.spec.short_form import ShortJob
from corral.spec.storage import StorageDocument

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def canonical_schema() -> dict[str, Any]:
    """The JSON schema of the canonical job document."""
    return schema_of(UnifiedJob, "Corral job, canonical form")


def short_schema() -> dict[str, Any]:
    """The JSON schema of the short form."""
    return schema_of(ShortJob, "Corral job")


def cluster_schema() -> dict[str, Any]:
    """The JSON schema of the cluster document."""
    return schema_of(ClusterDocument, "Corral cluster")


def storage_schema() -> dict[str, Any]:
    """The JSON schema of the storage document."""
    return schema_of(StorageDocument, "Corral storage")


def prices_schema() -> dict[str, Any]:
    """The JSON schema of the prices document."""
    return schema_of(PricesDocument, "Corral prices")


def queue_schema() -> dict[str, Any]:
    """The JSON schema of the queue document."""
    return schema_of(QueueDocument, "Corral queue")


def policy_schema() -> dict[str, Any]:
    """The JSON schema of the policy document."""
    return schema_of(PolicyDocument, "Corral policy")


def devices_schema() -> dict[str, Any]:
    """The JSON schema of the Devices document."""
    return schema_of(DevicesDocument, "Corral devices")


def schema_of(model: type[BaseModel], title: str) -> dict[str, Any]:
    """The JSON schema of a document."""
    schema = _without_titles(model.model_json_schema(by_alias=True, mode="validation"))
    return {"$schema": _DIALECT, **schema, "title": title}


def _without_titles(value: Any, names: bool = False) -> Any:
    """Drop the titles that pydantic derives from field names.

    `names` marks a mapping whose keys are field names, so that a field called title is kept.
    """
    if isinstance(value, dict):
        return {
            key: _without_titles(inner, key in ("properties", "$defs"))
            for key, inner in value.items()
            if names or key != "title"
        }
    return [_without_titles(item) for item in value] if isinstance(value, list) else value


def reference(title: str, schema: dict[str, Any]) -> str:
    """The reference page of a document's fields, in Markdown."""
    head = [f"# {title}: every field", "", "This page is generated from the models that check the document.", ""]
    return "\n".join([*head, *_tables(schema)]).rstrip() + "\n"


def _tables(schema: dict[str, Any]) -> Iterator[str]:
    definitions = schema.get("$defs", {})
    for name, part in [("", schema), *((name, definitions[name]) for name in _reached(schema))]:
        if name:
            yield from (f"### {_heading(name)}", "", part["description"], "")
        yield from ("| field | value | default | meaning |", "|---|---|---|---|")
        for field, said in part["properties"].items():
            default = "required" if field in part.get("required", ()) else _default(said)
            yield f"| `{field}` | {_kind(said)} | {default} | {_cell(_meaning(said, definitions))} |"
        yield ""


def _reached(schema: dict[str, Any]) -> list[str]:
    """The names of the parts, in the order in which the schema first refers to them."""
    order: list[str] = []

    def visit(value: Any) -> None:
        if isinstance(value, dict):
            reference = value.get("$ref")
            if isinstance(reference, str) and (name := reference.rsplit("/", 1)[-1]) not in order:
                order.append(name)
                visit(schema["$defs"][name])
            for key, inner in value.items():
                if key != "$defs":
                    visit(inner)
        elif isinstance(value, list):
            for item in value:
                visit(item)

    visit(schema)
    return order


def _heading(name: str) -> str:
    return name.removeprefix("Short")


def _kind(said: dict[str, Any]) -> str:
    if "$ref" in said:
        name = _heading(said["$ref"].rsplit("/", 1)[-1])
        return f"[{name}](#{name.lower()})"
    if "anyOf" in said:
        return " or ".join(dict.fromkeys(_kind(each) for each in said["anyOf"] if each.get("type") != "null"))
    if "const" in said or "enum" in said:
        return ", ".join(f"`{value}`" for value in said.get("enum", [said.get("const")]))
    if said.get("type") == "array":
        return f"list of {_kind(said.get('items', {}))}"
    if said.get("type") == "object":
        inner = said.get("additionalProperties") or next(iter(said.get("patternProperties", {}).values()), None)
        return f"map to {_kind(inner)}" if isinstance(inner, dict) else "mapping"
    kind = str(said.get("type", "any"))
    return {"string": "text", "boolean": "true, false"}.get(kind, kind)


def _default(said: dict[str, Any]) -> str:
    value = said.get("default")
    return "" if value in (None, "", [], {}) else f"`{json.dumps(value)}`"


def _meaning(said: dict[str, Any], definitions: dict[str, Any]) -> str:
    """A field's description; pydantic omits it when it equals its type's description."""
    target = said.get("$ref", "").rsplit("/", 1)[-1]
    return str(said["description"] if "description" in said else definitions[target]["description"])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def generated() -> dict[str, str]:
    """All generated files by their path below the documentation's folder."""
    documents = (
        ("schema/job-short.json", "reference/job.md", "The job file", short_schema()),
        ("schema/unifiedjob.json", "reference/canonical-job.md", "The canonical job", canonical_schema()),
        ("schema/cluster.json", "reference/cluster.md", "The cluster document", cluster_schema()),
        ("schema/queue.json", "reference/queue.md", "The queue document", queue_schema()),
        ("schema/storage.json", "reference/storage.md", "The storage document", storage_schema()),
        ("schema/prices.json", "reference/prices.md", "The prices document", prices_schema()),
        ("schema/policy.json", "reference/policy.md", "The policy document", policy_schema()),
        ("schema/devices.json", "reference/devices.md", "The devices document", devices_schema()),
    )
    crd = {"schema/unifiedjobs.corral.dev.yaml": crd_text(), **definition_files()}
    files = crd | {path: json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for path, _, _, schema in documents}
    return files | {page: reference(title, schema) for _, page, title, schema in documents}
