"""Test the schemas of the OpenAPI document, from which the portal's and the SDK's types are generated."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

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
