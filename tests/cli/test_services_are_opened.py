"""`corral open` picks the service that was meant, and `corral get` shows the command."""

from __future__ import annotations

from typing import Any

import click
import pytest

from corral.cli.job_detail import detail_text
from corral.cli.open_service import _chosen
from corral.kernel.errors import NotFound
from tests.cli.test_what_is_said_of_a_job import detail

SERVICES: Any = [
    {"task": "main-0", "name": "web", "port": 31000},
    {"task": "main-0", "name": "board", "port": 31001},
    {"task": "main-1", "name": "web", "port": 31002},
]


@pytest.mark.parametrize(
    ("task", "port", "found"),
    [("main-0", "web", 0), ("", "board", 1), ("main-1", "", 2), ("", "31002", 2), ("main-0", "31001", 1)],
)
def test_a_service_is_found_by_as_much_as_tells_it_apart(task: str, port: str, found: int) -> None:
    assert _chosen("vb", SERVICES, task, port) == SERVICES[found]


def test_the_only_service_needs_no_name_and_several_are_named() -> None:
    assert _chosen("vb", SERVICES[:1], "", "") == SERVICES[0]
    with pytest.raises(click.UsageError, match="Name one of the services of vb: main-0 web, main-1 web"):
        _chosen("vb", SERVICES, "", "web")
    with pytest.raises(NotFound, match=r"no running service main-7 \(it has: main-0 web"):
        _chosen("vb", SERVICES, "main-7", "")
    with pytest.raises(NotFound, match="a job file declares `ports`"):
        _chosen("vb", [], "", "")


def test_a_running_job_shows_how_its_services_are_opened() -> None:
    def spec(*ports: str) -> dict[str, Any]:
        counted = detail()["document"]["spec"]
        return {"spec": counted | {"roles": [{"name": "main", "ports": [{"name": each} for each in ports]}]}}

    running = {"state": "running", "document": spec("web")}
    assert "corral open vb\n" in click.unstyle(detail_text(detail(**running))) + "\n"
    assert "corral open" not in detail_text(detail(state="succeeded", document=spec("web")))
    assert "corral open" not in detail_text(detail(state="running", document=spec()))
    both = click.unstyle(detail_text(detail(state="running", document=spec("web"), jobType="notebook")))
    assert "corral open vb main-0 notebook; corral open vb main-0 web" in both
