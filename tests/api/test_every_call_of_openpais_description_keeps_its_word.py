"""Call every operation of OpenPAI's description: none may fault or give an answer that it does not describe.

Tools are generated from that description.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import response_schema_conformance

from tests.api.harness import Server, serving
from tests.api.idle_scheduler import IdleScheduler
from tests.api.openpai_description import load, operations

REFUSALS: Final = {400, 401, 403, 404, 409, 413, 429}
"""Statuses that OpenPAI answers to bad calls, even where the description does not list them."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str]]:
    """A server without limits, and an administrator's token."""
    with serving(tmp_path_factory.mktemp("openpai")) as server:
        server.service.context.control = IdleScheduler(server.clock)
        yield server, server.token("root")


@pytest.fixture(scope="module")
def described(served: tuple[Server, str], data_folder: Path) -> dict[str, Any]:
    """Every operation by its label."""
    document = load(data_folder)
    document["servers"] = [{"url": served[0].url}]
    found = (
        each.ok() for each in schemathesis.openapi.from_dict(document).get_all_operations() if isinstance(each, Ok)
    )
    return {operation.label: operation for operation in found}


LABELS: Final = {
    "GET /api/v2/info", "GET /api/v2/tokens", "DELETE /api/v2/tokens/{token}", "POST /api/v2/tokens/application",
    "GET /api/v2/authn/oidc/login", "GET /api/v2/authn/oidc/logout", "POST /api/v2/authn/basic/login",
    "DELETE /api/v2/authn/basic/logout", "POST /api/v2/users", "GET /api/v2/users", "PUT /api/v2/users",
    "PUT /api/v2/users/me", "GET /api/v2/users/{user}", "DELETE /api/v2/users/{user}", "PUT /api/v2/users/{user}/group/",
    "DELETE /api/v2/users/{user}/group/", "PUT /api/v2/users/{user}/grouplist/", "GET /api/v2/groups",
    "POST /api/v2/groups", "PUT /api/v2/groups", "GET /api/v2/groups/{group}", "DELETE /api/v2/groups/{group}",
    "GET /api/v2/groups/{group}/userlist", "GET /api/v2/virtual-clusters", "GET /api/v2/virtual-clusters/{vc}",
    "GET /api/v2/storages", "GET /api/v2/storages/{storage}", "POST /api/v2/jobs", "GET /api/v2/jobs",
    "GET /api/v2/jobs/{user}~{job}", "GET /api/v2/jobs/{user}~{job}/attempts/{jobAttemptId}",
    "GET /api/v2/jobs/{user}~{job}/config", "PUT /api/v2/jobs/{user}~{job}/executionType",
    "PUT /api/v2/jobs/{user}~{job}/tag", "DELETE /api/v2/jobs/{user}~{job}/tag", "GET /api/v2/jobs/{user}~{job}/events",
    "GET /api/v2/jobs/{user}~{job}/job-attempts/healthz", "GET /api/v2/jobs/{user}~{job}/job-attempts",
    "GET /api/v2/jobs/{user}~{job}/job-attempts/{attemptIndex}",
    "GET /api/v2/jobs/{user}~{job}/attempts/{jobAttemptId}/taskRoles/{taskRoleName}/taskIndex/{taskIndex}/attempts",
    "GET /api/v2/jobs/{user}~{job}/attempts/{jobAttemptId}/taskRoles/{taskRoleName}/taskIndex/{taskIndex}/attempts/"
    "{taskAttemptId}/logs",
    "GET /api/v2/kubernetes/nodes", "GET /api/v2/alerts", "GET /api/v2/kubernetes/pods",
}  # fmt: skip
"""All 44 operations."""


def test_these_are_all_operations(data_folder: Path) -> None:
    assert {f"{method} {path}" for method, path, _ in operations(load(data_folder))} == LABELS
    assert len(LABELS) == 44


@pytest.mark.parametrize("label", sorted(LABELS), ids=str)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["as-meant", "as-not-meant"])
def test_a_call(label: str, mode: GenerationMode, described: dict[str, Any], served: tuple[Server, str]) -> None:
    server, signed_in = served
    operation = described[label]
    documented = {int(status) for status in operation.definition.raw["responses"]}

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    def check(case: Any) -> None:
        token = server.token("root") if case.path.endswith("/logout") else signed_in
        answer = case.call(base_url=server.url, headers={"Authorization": f"Bearer {token}"})
        case.validate_response(answer, checks=[not_a_server_error])
        assert answer.status_code in documented | REFUSALS, f"{label}: {answer.status_code} {answer.text}"
        if answer.status_code in documented:
            case.validate_response(answer, checks=[response_schema_conformance])
        elif answer.status_code >= 400:
            assert set(answer.json()) == {"code", "message"}, answer.text

    try:
        check()
    except (Unsatisfiable, schemathesis.errors.SchemathesisError) as error:
        if mode is GenerationMode.POSITIVE:
            raise AssertionError(f"no call fits the description of {label}") from error
