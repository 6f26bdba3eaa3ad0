"""Storages from their documents to their tasks: the command line, the scheduler and the local engine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import boto3  # type: ignore[import-untyped]
import pytest
from moto.server import ThreadedMotoServer

from corral.engines.local.storages import LocalStorages
from tests.endtoend.platform import Platform, one

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(not LocalStorages().namespace(), reason="this machine makes no mount namespaces for this user"),
]


@pytest.fixture
def places(platform: Platform, tmp_path: Path) -> Path:
    """A shared folder, and one with a folder for each user, declared as storages."""
    for name in ("shared", "homes"):
        (tmp_path / name).mkdir()
    (tmp_path / "shared/given").write_text("something\n")
    documents = "".join(
        f"kind: Storage\nname: {name}\ntype: folder\npath: {tmp_path / name}\nshare: {share}\n---\n"
        for name, share in (("shared", "true"), ("homes", "false"))
    )
    platform.corral("apply", "-", given=documents)
    return tmp_path


def test_storages_are_documents_of_the_command_line(platform: Platform, places: Path) -> None:
    assert "type: folder" in platform.corral("get", "storage/shared")
    assert "homes" in platform.corral("get", "storages")
    assert "REVISION" in platform.corral("history", "storage/homes")


def test_a_task_finds_its_storages_and_what_it_writes_there_stays(platform: Platform, places: Path) -> None:
    at = f"{places}/inside"
    script = f"cat {at}/all/given; echo kept >{at}/own/kept; pwd"
    storages = [{"name": "shared", "mountPath": f"{at}/all"}, {"name": "homes", "mountPath": f"{at}/own"}]
    job = platform.ran(one("stored", script, storages=storages))
    assert job["state"] == "succeeded", platform.log(job)
    assert platform.log(job).startswith("something\n")
    user = job["user"]
    assert (places / "homes" / user / "kept").read_text() == "kept\n"


def test_the_path_of_a_storage_is_below_mnt_by_its_name(platform: Platform, places: Path) -> None:
    platform.corral("apply", "-", given=f"kind: Storage\nname: corral-e2e\ntype: folder\npath: {places}/shared\n")
    place = Path("/mnt/corral-e2e")
    try:
        job = platform.ran(one("by-name", "cat /mnt/corral-e2e/given", storages=["corral-e2e"]))
        assert (job["state"], platform.log(job)) == ("succeeded", "something\n")
    finally:
        if place.is_dir() and os.getuid() == 0:
            place.rmdir()


def test_a_storage_that_is_nowhere_is_refused_at_submission(platform: Platform) -> None:
    document = "name: lost\nstorages: [nowhere]\nroles: {main: {command: 'true'}}\n"
    said = platform.refused("submit", "-", given=document, code=3)
    assert "Storage nowhere is not found." in said


def test_a_folder_that_the_machine_lacks_ends_the_job_with_its_name(platform: Platform, places: Path) -> None:
    platform.corral("apply", "-", given=f"kind: Storage\nname: gone\ntype: folder\npath: {places}/absent\n")
    job = platform.ran(one("missing", "true", storages=[{"name": "gone", "mountPath": f"{places}/x"}]))
    assert job["state"] == "failed"
    assert f"The storage gone is not on this machine: no folder {places}/absent" in str(job["exit"])


def test_a_storage_deleted_before_the_start_ends_the_job_with_its_name(platform: Platform, places: Path) -> None:
    platform.corral("apply", "-", given=f"kind: Storage\nname: brief\ntype: folder\npath: {places}/shared\n")
    first = platform.submit(one("first", "sleep 1000"))
    use = [{"name": "brief", "mountPath": f"{places}/x"}]
    second = platform.submit(one("second", "true", storages=use, after=[{"job": first["id"], "condition": "ended"}]))
    platform.corral("delete", "storage/brief")
    platform.client.stop(first["id"])
    ended = platform.ended(second)
    assert ended["state"] == "failed"
    assert "The storage brief is not there any more." in str(ended["exit"])


@pytest.fixture
def bucket() -> Iterator[dict[str, str]]:
    remote = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    remote.start()
    host, port = remote.get_host_and_port()
    env = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "hunter2",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    client = boto3.client("s3", endpoint_url=env["AWS_ENDPOINT_URL"], region_name="us-east-1",
                          aws_access_key_id="somebody", aws_secret_access_key="hunter2")  # fmt: skip
    client.create_bucket(Bucket="lab")
    client.put_object(Bucket="lab", Key="data/words", Body=b"three short words\n")
    yield env
    remote.stop()


def test_data_in_a_bucket_are_a_folder_of_the_task_and_go_back(
    platform: Platform, tmp_path: Path, bucket: dict[str, str]
) -> None:
    platform.corral("apply", "-", given="kind: Storage\nname: bucket\ntype: uri\nuri: s3://lab/data\n")
    at = f"{tmp_path}/bucket"
    script = f"wc -w <{at}/words >{at}/count"
    use = [{"name": "bucket", "mountPath": at}]
    job = platform.ran(one("counted", script, role={"env": bucket}, storages=use))
    assert job["state"] == "succeeded", platform.log(job)
    again = platform.ran(one("again", f"cat {at}/count", role={"env": bucket}, storages=use))
    assert again["state"] == "succeeded", platform.log(again)
    assert "3" in platform.log(again).split()
