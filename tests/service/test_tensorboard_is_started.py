"""TensorBoard for jobs: what it reads, what it is refused, and that the same jobs get the same one again."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from corral.kernel.errors import Conflict, Forbidden, InvalidInput
from corral.service.jobs.tensorboards import _SCRIPT, _document, _Folder
from corral.service.service import Service
from corral.spec.job import UnifiedJob
from corral.spec.job_reader import load_job
from tests.service.conftest import ANN, BOB, ROOT


def text(name: str = "digits", **more: Any) -> str:
    role = {"command": "python train.py", **more.pop("role", {})}
    return json.dumps({"name": name, "roles": {"worker": role}, **more})


def read(name: str = "digits", **more: Any) -> UnifiedJob:
    return load_job(text(name, **more), filename="job.yaml")


async def submitted(service: Service, *args: Any, **more: Any) -> str:
    done = await service.submission.submit(ANN, text(*args, **more))
    assert done.detail is not None
    return done.detail.id


async def test_outputs_and_absolute_folders_are_read_on_no_device(service: Service) -> None:
    kept = [{"path": "runs", "uri": "file:///data/my%20runs"}, {"path": "more", "uri": "s3://bucket/more"}]
    job = await submitted(service, outputs=kept, workingDir="/data/digits", env={"PATH": "/opt/tb/bin"})
    made = await service.tensorboards.start(ANN, [job, job])
    spec: Any = made.document["spec"]
    (role,) = spec["roles"]
    pairs = role["command"][4:]
    assert dict(zip(pairs[::2], pairs[1::2], strict=True)) == {
        "digits-output-0": "/data/my runs",
        "digits-output-1": "../fetched/digits-output-1",
        "digits-worker": "/data/digits",
    }
    assert [(each["uri"], each["path"]) for each in spec["inputs"]] == [("s3://bucket/more", "fetched/digits-output-1")]
    assert role["resources"]["devices"]["count"] == 0 and role["env"] == {"PATH": "/opt/tb/bin"}
    assert (await service.tensorboards.start(ANN, [job])).id == made.id, "the same jobs get the same one"


async def test_jobs_that_keep_nothing_and_jobs_of_others_are_refused(service: Service) -> None:
    job = await submitted(service)
    with pytest.raises(Conflict, match="keeps nothing that TensorBoard can read"):
        await service.tensorboards.start(ANN, [job])
    with pytest.raises(Forbidden):
        await service.tensorboards.start(BOB, [job])
    for refs in ([], [str(each) for each in range(21)]):
        with pytest.raises(InvalidInput, match="1 to 20 jobs"):
            await service.tensorboards.start(ANN, refs)


def test_storages_are_mounted_where_the_jobs_have_them_and_only_if_they_are_read() -> None:
    jobs = [read(storages=["home", "other"]), read("b", storages=[{"name": "home", "mountPath": "/me"}])]
    made = _document(jobs, [_Folder("a", "/mnt/home/a"), _Folder("b", "/me/b")], jobs[0])
    assert made["storages"] == [{"name": "home", "mountPath": "/mnt/home"}, {"name": "home", "mountPath": "/me"}]
    same = [read(storages=["home"]), read("b", storages=[{"name": "other", "mountPath": "/mnt/home"}])]
    with pytest.raises(Conflict, match="different storages at /mnt/home"):
        _document(same, [_Folder("a", "/mnt/home/a")], same[0])


def test_the_storage_with_the_programs_of_one_s_own_job_is_mounted_as_well() -> None:
    env = {"PATH": "/envs/tb/bin:/usr/bin"}
    own, theirs = (
        read(name, storages=["runs", {"name": f"envs-of-{name}", "mountPath": at}], role={"env": env, "image": "a/b:1"})
        for name, at in (("own", "/envs"), ("theirs", "/their/envs"))
    )
    runs, programs = ({"name": "runs", "mountPath": "/mnt/runs"}, {"name": "envs-of-own", "mountPath": "/envs"})
    made = _document([theirs, own], [_Folder("a", "/mnt/runs/a")], own)
    assert (made["storages"], made["roles"]["main"]["image"]) == ([runs, programs], "a/b:1")


@pytest.mark.parametrize(("path", "image"), [("/mnt/home/a", "org/torch:1"), ("/data/a", "")])
def test_an_image_is_used_only_where_it_sees_the_files(path: str, image: str) -> None:
    job = read(storages=["home"], image="org/torch:1")
    assert _document([job], [_Folder("a", path)], job)["roles"]["main"].get("image", "") == image


async def test_no_program_of_another_user_s_job_runs_with_one_s_own_rights(service: Service) -> None:
    """The image and the search path of a job are its user's: whoever looks at it must not run what they hold."""
    kept = [{"path": "runs", "uri": "file:///data/runs"}]
    theirs = await submitted(service, outputs=kept, env={"PATH": "/home/ann/bin"})
    made = await service.tensorboards.start(ROOT, [theirs])
    assert "PATH" not in made.document["spec"]["roles"][0].get("env", {})
    own = await service.submission.submit(ROOT, text("own", outputs=kept, env={"PATH": "/home/root/bin"}))
    assert own.detail is not None
    beside = await service.tensorboards.start(ROOT, [theirs, own.detail.id])
    assert beside.document["spec"]["roles"][0]["env"] == {"PATH": "/home/root/bin"}


def test_another_user_s_image_is_refused_and_one_s_own_is_used_beside_it() -> None:
    theirs, own = (read(name, storages=["home"], image=f"{name}/torch:1") for name in ("ann", "root"))
    folders = [_Folder("a", "/mnt/home/a")]
    with pytest.raises(Conflict, match="Name a job of your own beside it"):
        _document([theirs], folders, None)
    assert _document([theirs, own], folders, own)["roles"]["main"]["image"] == "root/torch:1"


def _run_script(folder: Path, search_path: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": search_path, "CORRAL_HOST": "127.0.0.1", "CORRAL_PORT_TENSORBOARD": "1"}
    words = ["sh", "digits-runs", str(folder)]
    return subprocess.run(
        ["/bin/sh", "-c", _SCRIPT, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_log_says_what_to_do_where_no_tensorboard_is(tmp_path: Path) -> None:
    ended = _run_script(tmp_path, str(tmp_path))
    assert ended.returncode == 127
    assert ended.stderr.startswith("This task finds no program tensorboard. Install TensorBoard, ")
    assert f"PATH={tmp_path}" in ended.stderr


def test_the_tensorboard_of_the_search_path_is_run_on_the_folders(tmp_path: Path) -> None:
    program = tmp_path / "tensorboard"
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    ended = _run_script(tmp_path, f"{tmp_path}:/usr/bin:/bin")
    assert ended.stdout == "--logdir logs --host 127.0.0.1 --port 1\n"
    assert (tmp_path / "logs/digits-runs").resolve() == tmp_path
