"""Call every operation of the OpenAPI document: none may fault, give undocumented answers or skip authentication."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.harness import Server, serving
from tests.api.idle_scheduler import IdleScheduler
from tests.conftest import ROOT

STREAMS = "/api/v3/events"
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str]]:
    """A server with some data, and an administrator's token."""
    with serving(tmp_path_factory.mktemp("schema")) as server:
        server.service.context.control = IdleScheduler(server.clock)
        with server.client("root") as client:
            client.submit('{"name": "a-job", "framework": "shell", "roles": {"worker": {"command": "true"}}}')
            yield server, client.token


@pytest.fixture(scope="module")
def operations(served: tuple[Server, str]) -> dict[str, Any]:
    """Every operation of the document by its label, except the endless stream."""
    served[0].app.openapi()  # Schemathesis waits for ten seconds, and on a busy machine the first takes as long
    schema = schemathesis.openapi.from_url(f"{served[0].url}/openapi.json").exclude(path=STREAMS)
    found = (each.ok() for each in schema.get_all_operations() if isinstance(each, Ok))
    return {operation.label: operation for operation in found}


def _labels() -> list[str]:
    """Every operation of the generated document, which `tests/house/test_docs.py` compares with the code's."""
    paths = json.loads((ROOT / "docs" / "schema" / "openapi.json").read_text())["paths"]
    return [f"{method.upper()} {path}" for path in paths if path != STREAMS for method in paths[path]]


@pytest.mark.parametrize("label", _labels())
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["as-meant", "as-not-meant"])
def test_a_call(label: str, mode: GenerationMode, operations: dict[str, Any], served: tuple[Server, str]) -> None:
    server, signed_in = served
    operation = operations[label]

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    def check(case: Any) -> None:
        token = server.token("root") if case.path == "/api/v3/logout" else signed_in
        headers = {"Authorization": f"Bearer {token}"}
        answer = case.call(headers=headers)
        if answer.status_code in (414, 431):  # of the whole request, before any route: each part alone may be this long
            assert set(answer.json()) == {"code", "message"}
            return
        case.validate_response(answer, headers=headers, checks=CHECKS)

    try:
        check()
    except (Unsatisfiable, schemathesis.errors.SchemathesisError) as error:
        if mode is GenerationMode.POSITIVE:
            raise AssertionError(f"no call fits the document of {label}") from error


def test_every_reference_in_the_document_leads_somewhere(served: tuple[Server, str]) -> None:
    spec = served[0].app.openapi()
    named = set(re.findall(r"#/components/schemas/([^\"]+)", json.dumps(spec)))
    assert named <= set(spec["components"]["schemas"])


def test_every_route_but_the_open_ones_asks_who_calls(served: tuple[Server, str]) -> None:
    spec = served[0].app.openapi()
    for path, methods in spec["paths"].items():
        for method, operation in methods.items():
            if not operation["security"]:
                continue
            filled = re.sub(r"\{(\w+)\}", lambda found: {"index": "0", "digest": "0" * 64}.get(found[1], "x"), path)
            response = httpx2.request(method.upper(), served[0].url + filled, trust_env=False)
            assert response.status_code == 401, (method, path, response.text)


def test_every_operation_says_what_it_does(served: tuple[Server, str]) -> None:
    for path, methods in served[0].app.openapi()["paths"].items():
        for method, operation in methods.items():
            assert operation.get("description"), (method, path)
            assert operation["responses"], (method, path)
