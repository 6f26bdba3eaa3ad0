"""Check answers of OpenPAI's API against OpenPAI's own OpenAPI description."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import jsonschema_rs
import pytest
import yaml

METHODS: Final = ("get", "put", "post", "delete")
_ELSEWHERE: Final = re.compile(r"^https://.*/schemas/v2/schema\.yaml#/components/schemas/JobProtocol$")
MISSING: Final = (
    "InvalidProtocolError", "NoStorageError", "NoTagError", "NoTaskError", "NoTaskLogError", "ConflictGroupError",
    "TooManyRequestsError",
)  # fmt: skip
"""Error codes missing in the description that OpenPAI's server answers, or Corral where OpenPAI has none."""


def load(data_folder: Path) -> dict[str, Any]:
    """Load the description and inline the protocol's schema, which it refers to by URL."""
    folder = data_folder / "openpai" / "spec"
    if not folder.is_dir():
        pytest.skip("OpenPAI's description is not here: set CORRAL_DATA to the folder that has openpai/spec")
    description: dict[str, Any] = yaml.safe_load((folder / "rest-v2.swagger.yaml").read_text())
    protocol = yaml.safe_load((folder / "protocol-v2.schema.yaml").read_text())
    schemas = description["components"]["schemas"]
    names = schemas["Response"]["properties"]["code"]["enum"]
    names += set(MISSING) - set(names)
    assert _ELSEWHERE.match(schemas["JobProtocol"]["$ref"])
    schemas.update(protocol["components"]["schemas"])
    found: dict[str, Any] = _with_null(description)
    return found


def operations(description: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every operation: its method, its path and its description."""
    for path, methods in description["paths"].items():
        for method in METHODS:
            if method in methods:
                yield method.upper(), path, methods[method]


class Description:
    """The answers that each operation may give."""

    def __init__(self, data_folder: Path) -> None:
        self.document = load(data_folder)
        self.operations = {(method, path): said for method, path, said in operations(self.document)}

    def check(self, method: str, path: str, status: int, body: Any) -> None:
        """Raise AssertionError unless the operation may answer this."""
        responses = self.operations[method, path]["responses"]
        assert str(status) in responses, f"{method} {path} answered {status}: {body}"
        content = self._resolved(responses[str(status)]).get("content", {})
        schema = content.get("application/json", {}).get("schema")
        if schema is not None:
            validator = jsonschema_rs.validator_for({**schema, "components": self.document["components"]})
            wrong = [f"{list(error.instance_path)}: {error.message}" for error in validator.iter_errors(body)]
            assert not wrong, f"{method} {path} {status}: {wrong[:5]}"

    def _resolved(self, thing: dict[str, Any]) -> dict[str, Any]:
        if "$ref" not in thing:
            return thing
        found: Any = self.document
        for word in thing["$ref"].removeprefix("#/").split("/"):
            found = found[word]
        return self._resolved(found)


def _with_null(thing: Any) -> Any:
    """Translate `nullable` of OpenAPI 3.0 into JSON Schema."""
    if isinstance(thing, list):
        return [_with_null(each) for each in thing]
    if not isinstance(thing, dict):
        return thing
    made = {key: _with_null(value) for key, value in thing.items()}
    if made.get("nullable") is True:
        if isinstance(made.get("type"), str):
            made["type"] = [made["type"], "null"]
        if "enum" in made:
            made["enum"] = [*made["enum"], None]
    return made
