"""The outputs of a job are read by who may use the storage that they are in, and never by a path that leads out."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from corral.kernel.errors import Conflict, CorralError, Forbidden, InvalidInput, NotFound
from corral.kernel.ids import JobId
from corral.model.inventory import Node
from corral.service.actor import Actor
from corral.service.service import Service
from corral.store import Store
from tests.service.conftest import ANN, BOB, ROOT
from tests.service.test_jobs import _run

READER = Actor("bob", token_id="t-bob", storages=("shelf",))
ANN_READS = Actor("ann", token_id="t-ann", storages=("shelf",))


@pytest.fixture
async def shelf(service: Service) -> AsyncIterator[Path]:
    """A storage of the machine, with a file in a folder of it; not below /dev, which is none of a storage's folders."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "shelf"
        (folder / "runs" / "one").mkdir(parents=True)
        (folder / "runs" / "one" / "loss.csv").write_text("step,loss\n1,0.5\n")
        (folder / "secret").write_text("beside the output")
        for each in (*folder.rglob("*"), folder, folder.parent):
            each.chmod(each.stat().st_mode | (0o555 if each.is_dir() else 0o444))
        await service.configuration.apply(ROOT, f"kind: Storage\nname: shelf\ntype: folder\npath: {folder}\n".encode())
        yield folder


async def submitted(service: Service, *uris: str, actor: Actor = ANN, **more: Any) -> str:
    outputs = [{"path": f"out{at}", "uri": uri} for at, uri in enumerate(uris)]
    text = json.dumps({"name": "digits", "roles": {"worker": {"command": "true"}}, "outputs": outputs, **more})
    done = await service.submission.submit(actor, text)
    assert done.detail is not None
    return done.detail.id


async def names(service: Service, actor: Actor, job: str, index: int = 0, path: str = "") -> list[str]:
    return [each.name for each in (await service.job_outputs.files(actor, job, index, path)).items]


async def test_an_output_in_a_storage_is_read_by_who_may_use_the_storage(service: Service, shelf: Path) -> None:
    job = await submitted(service, f"file://{shelf}/runs/one")
    (view,) = await service.job_outputs.views(READER, job)
    assert (view.storage, view.browsable, view.message) == ("shelf", True, "")
    assert await names(service, READER, job) == ["loss.csv"]
    found = await service.job_outputs.preview(READER, job, 0, "loss.csv")
    assert (found.columns, found.rows) == (("step", "loss"), (("1", "0.5"),))
    size, pieces = await service.job_outputs.file(READER, job, 0, "loss.csv")
    assert b"".join([each async for each in pieces]) == b"step,loss\n1,0.5\n" and size == 16
    assert any(each.action == "storage.read" for each in (await service.audit_log.page(ROOT)).items)
    (view,) = await service.job_outputs.views(BOB, job)
    assert not view.browsable and not view.storage
    with pytest.raises(Conflict):
        await names(service, BOB, job)


async def test_an_output_at_a_mounted_storage_is_found_by_the_path_of_the_tasks(service: Service, shelf: Path) -> None:
    use = [{"name": "shelf", "mountPath": "/mnt/here"}]
    job = await submitted(service, "file:///mnt/here/runs", actor=ANN_READS, storages=use)
    assert await names(service, ANN_READS, job) == ["one"]
    assert [each.storage for each in await service.job_outputs.views(ANN_READS, job)] == ["shelf", "shelf"]
    assert await names(service, ANN_READS, job, 1) == ["runs", "secret"]
    assert [each.browsable for each in await service.job_outputs.views(BOB, job)] == [False, False]


@pytest.mark.parametrize("path", ["..", "../secret", "one/../../secret", "/../secret"])
async def test_no_path_leads_out_of_an_output(service: Service, shelf: Path, path: str) -> None:
    job = await submitted(service, f"file://{shelf}/runs")
    with pytest.raises(InvalidInput, match="none of them"):
        await service.job_outputs.file(READER, job, 0, path)


async def test_an_absolute_path_stays_below_the_output(service: Service, shelf: Path) -> None:
    job = await submitted(service, f"file://{shelf}/runs")
    assert await names(service, READER, job, path="/one") == ["loss.csv"]
    with pytest.raises(NotFound):
        await service.job_outputs.file(READER, job, 0, f"{shelf}/secret")


async def test_an_output_that_is_one_file_is_listed_as_that_file(service: Service, shelf: Path) -> None:
    job = await submitted(service, f"file://{shelf}/runs/one/loss.csv")
    assert await names(service, READER, job) == ["loss.csv"]
    assert (await service.job_outputs.preview(READER, job, 0, "loss.csv")).kind == "table"
    with pytest.raises(NotFound):
        await service.job_outputs.preview(READER, job, 0, "other.csv")


async def test_a_uri_in_no_storage_is_never_opened_with_the_servers_credentials(service: Service) -> None:
    job = await submitted(service, "s3://bucket/runs", "hdfs://namenode/runs")
    for actor in (ANN, ROOT):
        assert [each.browsable for each in await service.job_outputs.views(actor, job)] == [False, False]
        with pytest.raises(Conflict, match="in no storage that you may use"):
            await names(service, actor, job)


async def test_a_storage_at_a_uri_holds_the_outputs_below_it_alone(service: Service) -> None:
    await service.configuration.apply(ROOT, b"kind: Storage\nname: shelf\ntype: uri\nuri: s3://bucket/runs\n")
    job = await submitted(service, "s3://bucket/runs/one", "s3://bucket/runs-of-others", "s3://other/runs/one")
    assert [each.storage for each in await service.job_outputs.views(READER, job)] == ["shelf", "", ""]


async def test_a_folder_of_this_machine_is_read_by_the_owner_once_a_task_was_here(
    service: Service, store: Store, epoch: int, machines: list[Node], shelf: Path
) -> None:
    await service.configuration.delete(ROOT, "Storage", "shelf")
    job = await submitted(service, f"file://{shelf}/runs", "file:///proc/self", "file:///./proc/self", "file:////sys")
    with pytest.raises(Conflict, match="does not reach"):
        await names(service, ANN, job)
    await _run(store, epoch, JobId(job))
    assert [each.browsable for each in await service.job_outputs.views(ANN, job)] == [True, False, False, False]
    assert await names(service, ANN, job) == ["one"]
    with pytest.raises((Forbidden, Conflict)):
        await names(service, BOB, job)
    (shelf / "runs" / "way").symlink_to("/etc")
    for path in ("way", "way/ssl"):
        with pytest.raises(CorralError, match=r"no .*way|symbolic link"):
            await names(service, ANN, job, path=path)


async def test_an_own_folder_is_shown_to_its_owner_and_no_one_else(service: Service, tmp_path: Path) -> None:
    home = tmp_path / "home"
    for name in ("ann", "bob"):
        (home / name / "runs").mkdir(parents=True)
        (home / name / "runs" / f"of-{name}").touch()
    for each in (*home.rglob("*"), home, *list(home.parents)[:-2]):
        each.chmod(each.stat().st_mode | (0o555 if each.is_dir() else 0o444))
    await service.configuration.apply(
        ROOT, f"kind: Storage\nname: shelf\ntype: folder\npath: {home}\nshare: false\n".encode()
    )
    job = await submitted(service, "file:///mnt/shelf/runs", actor=ANN_READS, storages=["shelf"])
    assert await names(service, ANN_READS, job) == ["of-ann"]
    for index in (0, 1):
        with pytest.raises(Conflict):
            await names(service, READER, job, index)


async def test_an_output_that_is_not_named_or_not_there_is_refused_in_a_sentence(service: Service, shelf: Path) -> None:
    job = await submitted(service, f"file://{shelf}/later")
    with pytest.raises(NotFound, match="has kept nothing there yet"):
        await names(service, READER, job)
    with pytest.raises(NotFound, match="has no output 1; it has 1"):
        await names(service, READER, job, 1)
