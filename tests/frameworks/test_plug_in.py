"""A1: a framework from its own package of one class, installed beside Corral, found by its entry point, and run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.frameworks.environments import ROOT
from tests.frameworks.platform import Platform

PLUG_IN = ROOT / "examples" / "plugins" / "corral-workqueue"

pytestmark = pytest.mark.frameworks


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the plugin, installed as a user would, but outside the tests' environment."""
    folder = tmp_path_factory.mktemp("plug-in") / "site"
    uv = Path(sys.executable).with_name("uv")
    command = [uv, "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", folder, PLUG_IN]
    env = dict(os.environ, PATH=f"{uv.parent}{os.pathsep}{os.environ['PATH']}", VIRTUAL_ENV=sys.prefix)
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def run(folder: Path | None, program: str, *arguments: str) -> str:
    """The output of a new interpreter that sees Corral, and the plugin if a folder is given."""
    path = os.pathsep.join(map(str, (ROOT, *([folder] if folder else []))))
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=dict(os.environ, PYTHONPATH=path),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_it_is_known_where_it_is_installed_and_only_there(installed: Path) -> None:
    program = "from corral.frameworks import job_types; print(*job_types())"
    assert "workqueue" in run(installed, program).split()
    assert "workqueue" not in run(None, program).split()


def test_its_job_is_accepted_and_told_what_the_class_says(installed: Path) -> None:
    program = """
import sys, json
from pathlib import Path
from corral.frameworks.runnable_job import load_runnable_job
from tests.frameworks.gangs import gang, render, without_identity
job = load_runnable_job(Path(sys.argv[1]).read_text())
tasks = render(gang(job, "task-1", "task-0", "task-2"))
print(json.dumps({name: [without_identity(task), len(task.ports)] for name, task in tasks.items()}))
"""
    told = json.loads(run(installed, program, str(PLUG_IN / "job.yaml")))
    assert told["task-2"] == [
        {
            "OMP_NUM_THREADS": "1",
            "QUEUE_HOST": "$(peer:task-0:host)",
            "QUEUE_PORT": "$(peer:task-0:port:queue)",
            "QUEUE_KEY": "$(secret:workqueue)",
            "QUEUE_ROLE": "worker",
        },
        0,
    ]
    assert told["task-0"][0]["QUEUE_ROLE"] == "queue"
    assert told["task-0"][1] == 1


def test_its_job_runs_on_a_server_that_has_it(installed: Path, tmp_path: Path) -> None:
    platform = Platform(tmp_path, {"PYTHONPATH": str(installed)})
    platform.up()
    try:
        assert re.search(r"sum of squares 8555, by \d workers", platform.run(PLUG_IN / "job.yaml"))
    finally:
        platform.down()
