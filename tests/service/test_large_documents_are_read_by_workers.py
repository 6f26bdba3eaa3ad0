"""Documents that are large, or small but expand to much, are handled by workers and not in the server's loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from corral.kernel.errors import InvalidInput, Unavailable
from corral.service.service import Service
from corral.spec.errors import SpecError
from corral.workers.pool import Workers
from tests.service.conftest import ANN, ROOT, FakeControl, job_text


@pytest.fixture(autouse=True)
def calls_of_workers() -> None:
    """Processes make the calls of workers, as on a server."""


RACKS = {"kind": "Cluster", "engine": "local", "racks": {"r[01-20]": {"nodes": "n[0001-0400]"}}}
QUEUE = json.dumps({"kind": "Queue", "name": "vision"})


@pytest.fixture
def handed(service: Service, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the functions given to workers."""
    names: list[str] = []
    call = service.context.workers.call

    async def noted(function: Callable[..., Any], *arguments: Any, **limits: Any) -> Any:
        names.append((function.func if isinstance(function, partial) else function).__name__)
        return await call(function, *arguments, **limits)

    monkeypatch.setattr(service.context.workers, "call", noted)
    return names


async def test_configuration_that_names_many_nodes_is_worked_out_by_a_worker(
    service: Service, fake_control: FakeControl, handed: list[str]
) -> None:
    fake_control.answers["/configuration/check"] = []
    await service.configuration.compare(ROOT, QUEUE)
    assert handed == []
    assert (await service.configuration.compare(ROOT, json.dumps(RACKS))).documents[0].action == "created"
    assert (await service.configuration.apply(ROOT, json.dumps(RACKS), note="racks")).documents[0].revision == 1
    escaped = json.dumps(RACKS).replace("[", "\\u005b")
    assert (await service.configuration.apply(ROOT, escaped)).documents[0].action == "unchanged"
    assert handed == ["changes_in", "outcomes", "changes_in", "planned", "changes_in", "planned"]
    handed.clear()
    assert "n[0001-0400]" in (await service.configuration.get(ROOT, "Cluster", "local")).text
    assert (await service.configuration.diff(ROOT, "Cluster", "local")).diff.startswith("---")
    await service.configuration.apply(ROOT, QUEUE)
    assert handed == ["view_of", "difference", "with_manager_limits", "planned"]


async def test_what_is_wrong_with_a_large_document_is_said_as_of_a_small_one(
    service: Service, handed: list[str]
) -> None:
    with pytest.raises(SpecError) as refused:
        await service.configuration.compare(ROOT, json.dumps(RACKS | {"nodez": {}}))
    assert "did you mean" in refused.value.message and refused.value.problems[0].column
    large = job_text(more="# " + "x" * 20_000 + "\nquueue: default\n")
    found = await service.submission.validate(ANN, large)
    assert not found.valid and "did you mean" in found.problems[0].message
    assert handed == ["changes_in", "read_runnable_job"]


async def test_a_large_job_is_the_one_that_its_file_says(service: Service, handed: list[str]) -> None:
    comment = "# " + "x" * 20_000 + "\n"
    small, large = (
        await service.submission.validate(ANN, job_text()),
        await service.submission.validate(ANN, comment + job_text()),
    )
    assert small.valid and small.document == large.document
    made = (await service.submission.submit(ANN, comment + job_text())).detail
    assert made is not None and made.document["metadata"]["name"] == small.document["metadata"]["name"]
    assert handed == ["read_runnable_job", "read_runnable_job"]


async def test_too_much_at_once_is_put_off_and_too_much_in_all_is_refused(service: Service) -> None:
    await service.context.workers.close()
    service.context.workers = Workers(size=1, waiting=0)
    large = job_text(more="# " + "x" * 20_000 + "\n")
    first = asyncio.create_task(service.submission.validate(ANN, large))
    await asyncio.sleep(0)
    with pytest.raises(Unavailable, match="too many large requests"):
        await service.submission.validate(ANN, large)
    assert (await first).valid
    with pytest.raises(InvalidInput, match="memory"):
        await service.context.run_in_worker(False, bytes, 1 << 40)
