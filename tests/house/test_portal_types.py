"""Test without Node that the portal's generated types have the fields of the OpenAPI document.

`web/types.test.mjs` compares the whole text, as a part of `make portal-test`.
"""

from __future__ import annotations

import re
from pathlib import Path

from docs.generate import openapi

GENERATED = Path(__file__).resolve().parents[2] / "web" / "src" / "api" / "schema.ts"
SCHEMA = re.compile(r"^ {8}(\w+): \{\n(.*?)^ {8}\};$", re.DOTALL | re.MULTILINE)
FIELD = re.compile(r"^ {12}\"?(\w+)\"?(\??):", re.MULTILINE)


def test_the_portals_types_have_the_fields_of_the_served_document() -> None:
    schemas = openapi()["components"]["schemas"]
    served = {
        name: {field: field in schema.get("required", ()) for field in schema["properties"]}
        for name, schema in schemas.items()
        if "properties" in schema
    }
    written = {
        name: {field: not optional for field, optional in FIELD.findall(body)}
        for name, body in SCHEMA.findall(GENERATED.read_text())
    }
    stale = {name for name in served.keys() | written.keys() if served.get(name) != written.get(name)}
    assert not stale, "web/src/api/schema.ts is out of date: run `make docs`"
