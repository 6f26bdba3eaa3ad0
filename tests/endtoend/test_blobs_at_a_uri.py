"""A server that stores logs and code at s3://; a second server with an empty disk finds them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.endtoend.platform import Platform, one

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def remote() -> Iterator[ThreadedMotoServer]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def store(remote: ThreadedMotoServer) -> dict[str, str]:
    """The settings of a store with the bucket `corral`."""
    host, port = remote.get_host_and_port()
    env = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "hunter2",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    client(env).create_bucket(Bucket="corral")
    return env


def client(env: dict[str, str]) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=env["AWS_ENDPOINT_URL"],
        aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
        region_name=env["AWS_DEFAULT_REGION"],
    )


def names(env: dict[str, str], prefix: str) -> list[str]:
    found = client(env).list_objects_v2(Bucket="corral", Prefix=prefix)
    return [each["Key"].removeprefix(prefix) for each in found.get("Contents", [])]


def test_code_and_logs_outlive_the_disk_of_the_server(tmp_path: Path, store: dict[str, str]) -> None:
    platform = Platform(tmp_path, "--blobs", "s3://corral/lab", env=store)
    platform.up()
    source = tmp_path / "source"
    source.mkdir()
    (source / "said.txt").write_text("from the code\n")
    document = one("coded", "cat said.txt; env | grep -c AWS_ || true", code={"path": str(source)})
    job = tmp_path / "job.yaml"
    job.write_text(json.dumps(document))
    first = platform.corral("submit", str(job), "-o", "name").strip()
    assert platform.ended(first)["state"] == "succeeded"
    assert platform.log(first, "main-0") == "from the code\n0\n", "and no task has what opens the store"
    (code,) = names(store, "lab/code/")
    assert code.endswith(".tar.gz")
    platform.corral("down", "--data", str(platform.data))
    shutil.rmtree(platform.data / "blobs" / "code")
    platform.up_again()
    again = platform.corral("submit", str(job), "-o", "name").strip()
    assert platform.ended(again)["state"] == "succeeded"
    assert platform.log(again, "main-0").startswith("from the code\n")
    job_id = platform.client.job(first)["id"]
    assert names(store, f"lab/logs/{job_id}/")[0].endswith(".end"), "copied when the server had begun"
    shutil.rmtree(platform.data / "blobs" / "logs" / job_id)
    assert platform.log(first, "main-0") == "from the code\n0\n"
    platform.down()


def test_a_store_that_cannot_be_opened_is_one_sentence(tmp_path: Path, store: dict[str, str]) -> None:
    platform = Platform(tmp_path, "--blobs", "s3://elsewhere/lab", env=store)
    said = platform.refused("up", *platform.options(), code=5)
    assert len(said.strip().splitlines()) == 1 and "s3://elsewhere/lab cannot be used: " in said
    assert "hunter2" not in said and not os.path.exists(platform.data / "corral.db")
    said = platform.refused("up", *platform.options()[:-2], "--blobs", "/srv/blobs", code=2)
    assert "/srv/blobs (blobs) is not a storage URI" in said


def test_a_store_that_is_away_keeps_no_job_from_running(
    tmp_path: Path, store: dict[str, str], remote: ThreadedMotoServer
) -> None:
    platform = Platform(tmp_path, "--blobs", "s3://corral/away", env=store)
    platform.up()
    checked = platform.run("doctor", "--data", str(platform.data), env={"CORRAL_BLOBS": "s3://corral/away"})
    assert "✔ blob store: s3://corral/away can be written and read" in checked.stdout
    remote.stop()
    job = platform.ran(one("plain", "echo here"))
    assert job["state"] == "succeeded" and platform.log(job, "main-0") == "here\n"
    (tmp_path / "code").mkdir()
    (tmp_path / "job.yaml").write_text(json.dumps(one("coded", "true", code={"path": "code"})))
    said = platform.refused("submit", str(tmp_path / "job.yaml"), code=5)
    assert "The blob store s3://corral/away/code cannot be used: " in said and "hunter2" not in said
    checked = platform.run("doctor", "--data", str(platform.data), env={"CORRAL_BLOBS": "s3://corral/away"})
    assert (
        checked.returncode == 4 and "✘ blob store: The blob store s3://corral/away cannot be used: " in checked.stdout
    )
    platform.down()
