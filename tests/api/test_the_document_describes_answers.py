"""Test the schemas of the OpenAPI document, from which the portal's and the SDK's types are generated."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import httpx2
import msgspec
import pytest
from fastapi import FastAPI

from corral.api.openapi import describe
from corral.model.records import JobSummary, rfc3339
from docs.generate import openapi


@pytest.fixture(scope="module")
def schemas() -> dict[str, Any]:
    """Every schema of the document by its name."""
    found: dict[str, Any] = openapi()["components"]["schemas"]
    return found


def test_an_answer_has_every_field(schemas: dict[str, Any]) -> None:
    job = JobSummary("1", "digits", "ada", "default", 10, "shell", "running", rfc3339(0))
    described = schemas["JobSummary"]
    assert list(msgspec.to_builtins(job)) == list(described["properties"]) == described["required"]
    assert not any("default" in field for field in described["properties"].values())


def test_a_request_may_leave_out_what_has_a_default(schemas: dict[str, Any]) -> None:
    assert schemas["Scale"]["required"] == ["replicas"]
    assert schemas["Scale"]["properties"]["role"]["default"] == ""


def test_the_docstring_of_a_field_is_its_description(schemas: dict[str, Any]) -> None:
    fields = schemas["JobDetail"]["properties"]
    assert fields["waitingSince"]["description"] == "When the present wait began."
    assert fields["taskRetries"]["description"] == "Retries of single tasks only.", "a field of its base"


def test_a_field_of_few_words_names_them(schemas: dict[str, Any]) -> None:
    assert schemas["JobSummary"]["properties"]["state"]["enum"][0] == "waiting"
    assert schemas["CordonView"]["properties"]["drain"]["enum"] == ["", "now", "after-jobs"]


def test_a_job_document_is_described_by_the_models_of_the_language(schemas: dict[str, Any]) -> None:
    assert schemas["JobDetail"]["properties"]["document"]["$ref"].endswith("/JobDocument")
    roles = schemas["JobSpec"]["properties"]["roles"]
    assert roles["items"] == {"$ref": "#/components/schemas/JobRole"}
    assert "command" in schemas["JobRole"]["properties"]


def test_the_schemas_are_in_the_order_of_their_names(schemas: dict[str, Any]) -> None:
    assert list(schemas) == sorted(schemas)


def test_an_answer_without_json_is_not_described_as_json() -> None:
    paths = openapi()["paths"]
    assert list(paths["/metrics"]["get"]["responses"]["200"]["content"]) == ["text/plain"]
    assert "content" not in paths["/api/v3/logout"]["post"]["responses"]["204"]


def test_the_document_names_its_server_and_its_licence() -> None:
    document = openapi()
    assert [each["url"] for each in document["servers"]] == ["/"]
    assert document["info"]["license"]["identifier"] == "MIT"


def test_a_redirect_is_described_with_the_address_that_it_leads_to() -> None:
    paths = openapi()["paths"]
    calls = [("login", "get"), ("callback", "get"), ("callback", "post"), ("logout", "get")]
    for name, method in calls:
        answers = paths[f"/api/v3/oidc/{name}"][method]["responses"]
        assert min(answers) == "303" and answers["303"]["headers"]["Location"]["required"], name
        assert "content" not in answers["303"]


async def test_callers_at_once_get_one_document_that_was_built_aside_of_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Building it takes longer than a request may hold up the loop (half a second)."""
    threads: list[int] = []

    def build(app: FastAPI) -> dict[str, Any]:
        threads.append(threading.get_ident())
        return {"openapi": "3.1.0"}

    monkeypatch.setattr("corral.api.openapi.document", build)
    app = FastAPI(openapi_url=None)
    describe(app)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://server") as client:
        answers = await asyncio.gather(*(client.get("/openapi.json") for _ in range(20)))
    assert {answer.text for answer in answers} == {'{"openapi": "3.1.0"}'}
    assert len(threads) == 1 and threads[0] != threading.get_ident()


def test_a_whole_bound_is_an_integer_whatever_was_imported_first(schemas: dict[str, Any]) -> None:
    bounds = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
    fields = [field for schema in schemas.values() for field in schema.get("properties", {}).values()]
    whole = [field[bound] for field in fields for bound in bounds if bound in field and field[bound] % 1 == 0]
    assert whole and all(isinstance(bound, int) for bound in whole)
