"""The published schemas and pages describe exactly the models' checks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from corral.spec.schema import (
    canonical_schema,
    cluster_schema,
    devices_schema,
    generated,
    policy_schema,
    queue_schema,
    short_schema,
)
from corral.spec.yaml_source import parse_source

ROOT = Path(__file__).parents[2]
SCHEMAS = {
    "canonical": canonical_schema(),
    "short": short_schema(),
    "cluster": cluster_schema(),
    "queue": queue_schema(),
    "policy": policy_schema(),
    "devices": devices_schema(),
}


def test_the_generated_files_are_up_to_date() -> None:
    stale = [
        path
        for path, text in generated().items()
        if not (file := ROOT / "docs" / path).exists() or file.read_text() != text
    ]
    assert not stale, f"run `python docs/generate.py` and commit docs/: {stale}"


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
def test_every_field_is_described(schema: dict[str, Any]) -> None:
    for name, part in [("the document", schema), *schema["$defs"].items()]:
        assert part.get("description"), name
        for field, said in part["properties"].items():
            target = schema["$defs"].get(said.get("$ref", "").rsplit("/", 1)[-1], {})
            assert said.get("description") or target.get("description"), f"{name}.{field}"


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
def test_the_schemas_are_schemas(schema: dict[str, Any]) -> None:
    jsonschema_rs.meta.validate(schema)


def test_the_canonical_schema_is_structural() -> None:
    def unions(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            yield from (key for key in ("anyOf", "oneOf", "allOf", "not") if key in value)
            for inner in value.values():
                yield from unions(inner)
        elif isinstance(value, list):
            for item in value:
                yield from unions(item)

    assert list(unions(SCHEMAS["canonical"])) == []


SHORT = """\
name: digits
framework: pytorch
roles:
  worker:
    replicas: {min: 2, max: 8}
    resources: {cpu: 0.5, memory: 2Gi, devices: 1}
    command: [python, train.py, 5]
    env: {A: 1, B: true}
    ports: [http]
    retry: 3
topology: {required: rack, preferred: pcie-switch}
priority: 7
network: rdma
maxDuration: 2h
after: [prepare]
array: 3
"""


def test_editors_accept_what_is_accepted() -> None:
    assert jsonschema_rs.is_valid(SCHEMAS["short"], json.loads(json.dumps(parse_source(SHORT).data)))
    cluster = (ROOT / "examples" / "cluster.yaml").read_text()
    assert jsonschema_rs.is_valid(SCHEMAS["cluster"], parse_source(cluster).data)


@pytest.mark.parametrize(
    "line", ["name: My Job", "frameworc: x", "topology: {requird: rack}", "roles: [w]", "tags: x", "maxDuration: []"]
)
def test_editors_mark_what_is_refused(line: str) -> None:
    data = {"name": "a", "roles": {"w": {"command": "x"}}} | parse_source(line).data
    assert not jsonschema_rs.is_valid(SCHEMAS["short"], data)
