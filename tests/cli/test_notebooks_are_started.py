"""`corral notebook` writes a job file of what was chosen, and waits until the notebook runs or has ended."""

from __future__ import annotations

import json
from typing import Any

import click
import pytest

from corral.cli.notebook import await_run, document_of
from corral.kernel.errors import Conflict
from corral.spec.job_reader import load_job

NOTHING: Any = {
    "name": "lab", "image": "", "environment": "", "devices": 0, "model": "", "cpu": "2", "memory": "", "idle": "1h",
    "queue": "",
}  # fmt: skip


def test_nothing_that_was_not_chosen_is_written() -> None:
    role = {"resources": {"cpu": "2"}}
    assert document_of("", **NOTHING) == {"name": "lab", "framework": "notebook", "idle": "1h", "roles": {"main": role}}
    assert "idle" not in document_of("", **{**NOTHING, "idle": "0"})


@pytest.mark.parametrize(
    ("folder", "storages", "directory"),
    [
        ("", [], ""),
        ("/data/lab", [], "/data/lab"),
        ("home", ["home"], "/mnt/home"),
        ("home/a/", ["home"], "/mnt/home/a"),
    ],
)
def test_a_folder_is_a_path_or_one_of_a_storage(folder: str, storages: list[str], directory: str) -> None:
    asked = {**NOTHING, "environment": "/opt/torch/", "devices": 1, "memory": "8Gi", "queue": "research"}
    job = load_job(json.dumps(document_of(folder, **asked)), filename="job.yaml")
    (role,) = job.spec.roles
    assert ([use.name for use in job.spec.storages], role.working_dir) == (storages, directory)
    assert role.env["PATH"].startswith("/opt/torch/bin:") and role.resources.devices.count == 1
    assert (job.spec.idle_seconds, job.spec.queue, job.spec.job_type) == (3600, "research", "notebook")


def test_an_image_beside_an_environment_is_refused() -> None:
    with pytest.raises(click.UsageError, match="not both"):
        document_of("", **{**NOTHING, "image": "org/lab", "environment": "/opt/torch"})


def test_a_notebook_that_ends_before_it_runs_is_told() -> None:
    ended: Any = {"id": "j1", "name": "lab", "state": "failed", "tasks": {"running": 0}}
    with pytest.raises(Conflict, match=r"lab has ended \(failed\); see corral logs j1"):
        await_run(None, ended)  # type: ignore[arg-type]
