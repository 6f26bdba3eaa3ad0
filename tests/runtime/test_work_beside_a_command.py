"""Whatever happens beside a command, its container gets the command line to execute."""

from __future__ import annotations

import hashlib
import hmac
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from corral.runtime.beside import ENTRY, READY, _begin
from corral.runtime.notebook_activity import activity_of
from corral.runtime.plan import Plan
from corral.runtime.run import notebook_variables


def begun(
    tmp_path: Path, directory: Path, *, command: str = "pwd", image: Mapping[str, str] | None = None, **fields: Any
) -> subprocess.CompletedProcess[str]:
    """Run the command's shell with its entry, and the variables of its image."""
    plan = Plan(
        attempt="j.0.worker.0.0",
        command=["sh", "-c", command],
        work=str(tmp_path),
        directory=str(directory),
        shared=str(tmp_path),
        **fields,
    )
    before = os.umask(0)
    try:
        _begin(plan, None, str(tmp_path / ENTRY), str(tmp_path / READY))
    finally:
        os.umask(before)
    env = {"PATH": os.environ["PATH"], **(image or {})}
    return subprocess.run(["sh", str(tmp_path / ENTRY)], env=env, capture_output=True, text=True, check=False)


def test_a_folder_of_the_shared_one_is_made(tmp_path: Path) -> None:
    assert begun(tmp_path, tmp_path / "new/folder").stdout == f"{tmp_path}/new/folder\n"


def test_a_folder_that_cannot_be_made_here_is_refused_where_the_command_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = begun(tmp_path, tmp_path / "file/folder")
    assert (tmp_path / READY).exists()
    assert ended.returncode == 126
    assert f"the working directory {tmp_path}/file/folder cannot be entered" in ended.stderr


@pytest.mark.parametrize(
    ("image", "job", "before"),
    [
        ({}, {}, ""),
        ({"PYTHONPATH": "/image"}, {}, "/image:"),
        ({"PYTHONPATH": "/image"}, {"PYTHONPATH": "/job"}, "/job:"),
    ],
    ids=["no path", "the image's", "the job's"],
)
def test_pytorch_is_told_where_to_ask_and_the_path_of_the_image_or_job_stays(
    tmp_path: Path, image: dict[str, str], job: dict[str, str], before: str
) -> None:
    folder = tmp_path / "torch"
    script = 'echo "$PYTHONPATH $KINETO_USE_DAEMON $KINETO_IPC_SOCKET_DIR"; ls $KINETO_IPC_SOCKET_DIR'
    said = begun(
        tmp_path, tmp_path, command=script, image=image, env=job, profile=True, profiler_folder=str(folder)
    ).stdout.split()
    assert said == [f"{before}{folder}/python", "1", str(folder), "dynolog", "python"]


def test_a_job_without_profile_is_told_nothing(tmp_path: Path) -> None:
    assert begun(tmp_path, tmp_path, command='echo "<$KINETO_USE_DAEMON>"').stdout == "<>\n"
    assert not (tmp_path / "torch").exists()


@pytest.mark.parametrize("notebook", ["/proxy/j/worker-0/notebook/", ""])
def test_a_container_that_was_started_again_knows_how_to_ask_the_notebook(tmp_path: Path, notebook: str) -> None:
    (tmp_path / "key").write_text("k")
    env = {"CORRAL_PORT_NOTEBOOK": "20000", "JUPYTER_TOKEN": "$(secret:notebook)", "OTHER": "$(peer:worker:9)"}
    given: dict[str, Any] = {"env": env, "notebook": notebook, "job_secret_file": str(tmp_path / "key")}
    plan = Plan("j.0.worker.0.0", ["true"], str(tmp_path), **given)
    found = notebook_variables(plan)
    assert list(found) == (["CORRAL_PORT_NOTEBOOK", "JUPYTER_TOKEN"] if notebook else [])
    assert bool(activity_of(notebook, found)) == bool(notebook)
    token = hmac.new(b"k", b"notebook", hashlib.sha256).hexdigest()
    assert found.get("JUPYTER_TOKEN", "") == (token if notebook else "")
