"""TensorBoard for jobs: what it reads, what it is refused, and that the same jobs get the same one again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from corral.kernel.errors import Conflict, Forbidden, InvalidInput
from corral.service.jobs.tensorboards import _document, _Folder
from corral.service.service import Service
from corral.spec.job import UnifiedJob
from corral.spec.job_reader import load_job
from tests.service.conftest import ANN, BOB


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
    made = _document(jobs, [_Folder("a", "/mnt/home/a"), _Folder("b", "/me/b")])
    assert made["storages"] == [{"name": "home", "mountPath": "/mnt/home"}, {"name": "home", "mountPath": "/me"}]
    same = [read(storages=["home"]), read("b", storages=[{"name": "other", "mountPath": "/mnt/home"}])]
    with pytest.raises(Conflict, match="different storages at /mnt/home"):
        _document(same, [_Folder("a", "/mnt/home/a")])


@pytest.mark.parametrize(("path", "image"), [("/mnt/home/a", "org/torch:1"), ("/data/a", "")])
def test_an_image_is_used_only_where_it_sees_the_files(path: str, image: str) -> None:
    job = read(storages=["home"], image="org/torch:1")
    assert _document([job], [_Folder("a", path)])["roles"]["main"].get("image", "") == image
