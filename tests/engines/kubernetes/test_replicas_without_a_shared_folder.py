"""Two servers that share a database, a key and an object store, but no folder: both have all logs and code."""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.endtoend.platform import Job, one
from tests.engines.kubernetes.replicas import Replica, both
from tests.engines.kubernetes.test_testbed import until
from tests.engines.kubernetes.test_two_replicas import Pair
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.kubelet import KubeletNode
from tests.testbeds.kubernetes.pythontree import PYTHON, python_tree
from tests.testbeds.postgresql import PostgresServer

pytestmark = [pytest.mark.kubernetes, pytest.mark.postgres, pytest.mark.kubelet, pytest.mark.timeout(300)]
NAMESPACE = "apart"
KEYS = {"AWS_ACCESS_KEY_ID": "somebody", "AWS_SECRET_ACCESS_KEY": "hunter2", "AWS_DEFAULT_REGION": "us-east-1"}


class Bucket:
    """The object store that the replicas share."""

    def __init__(self) -> None:
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._server.start()
        host, port = self._server.get_host_and_port()
        self.env = KEYS | {"AWS_ENDPOINT_URL": f"http://{host}:{port}", "CORRAL_BLOBS": "s3://corral/shared"}
        self._client = boto3.client(
            "s3",
            endpoint_url=self.env["AWS_ENDPOINT_URL"],
            aws_access_key_id="somebody",
            aws_secret_access_key="hunter2",
            region_name="us-east-1",
        )
        self._client.create_bucket(Bucket="corral")

    def names(self, prefix: str) -> list[str]:
        """The names of the objects below a prefix."""
        found = self._client.list_objects_v2(Bucket="corral", Prefix=f"shared/{prefix}")
        return [each["Key"].removeprefix("shared/") for each in found.get("Contents", [])]

    def close(self) -> None:
        """Stop it."""
        self._server.stop()


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    made = Bucket()
    yield made
    made.close()


@pytest.fixture(scope="module")
def pair(
    control_plane: ControlPlane,
    kubelet_node: KubeletNode,
    bucket: Bucket,
    postgres: PostgresServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("apart")
    kubelet_node.provide(PYTHON, python_tree)
    control_plane.add_namespace(NAMESPACE)
    database = postgres.create()
    replicas = [
        Replica(folder / name, name, database, control_plane, NAMESPACE, image=PYTHON) for name in ("left", "right")
    ]
    for replica in replicas:
        replica.env |= bucket.env
    with both(*replicas, blobs=False):
        yield Pair(replicas, database)
    control_plane.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")


@pytest.fixture
def here(kubelet_node: KubeletNode) -> dict[str, Any]:
    return {"nodeSelector": {"kubernetes.io/hostname": kubelet_node.name}}


def test_code_that_one_was_sent_runs_from_the_other(
    pair: Pair, bucket: Bucket, here: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "said.txt").write_text("from afar\n")
    document = one("coded", "cat said.txt", role=here, code={"path": "source"})
    (tmp_path / "job.yaml").write_text(json.dumps(document))
    sent, leading = pair.other(), pair.leading()
    job = sent.corral("submit", str(tmp_path / "job.yaml"), "-o", "name", "--wait-for-capacity").strip()
    assert sent.ended(job)["state"] == "succeeded", sent.client.job(job)
    (code,) = bucket.names("code/")
    assert (leading.data / "blobs" / code).exists(), "fetched by the one that leads"
    for replica in (sent, leading):
        assert replica.log(job, "main-0") == "from afar\n"


class Following:
    """Follows a task's log in a thread."""

    def __init__(self, replica: Replica, job: Job) -> None:
        self.seen = b""
        self.failed = ""
        self._replica, self._job = replica, job
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def has(self, pattern: bytes) -> None:
        """Wait until the log has matched the pattern."""
        until(lambda: re.search(pattern, self.seen) or bool(self.failed) or None, f"{pattern!r} in the log")
        assert not self.failed, self.failed

    def ended(self) -> bytes:
        """Wait for the log's end; returns all of it."""
        self._thread.join(timeout=120)
        assert not self._thread.is_alive() and not self.failed, self.failed
        return self.seen

    def _run(self) -> None:
        try:
            for piece in self._replica.client.log(self._job["id"], "main", 0, follow=True):
                self.seen += piece
        except Exception as error:
            self.failed = f"{type(error).__name__}: {error}"


def test_a_log_goes_on_whole_when_the_machine_of_the_leader_is_lost(
    pair: Pair, bucket: Bucket, here: dict[str, Any], tmp_path: Path
) -> None:
    victim, heir = pair.leading(), pair.other()
    script = "i=0; while [ ! -e /dev/shm/over ]; do i=$((i+1)); echo line $i; sleep 0.1; done; echo over after $i"
    job = heir.submit(one("counts", script, role=here), wait_for_capacity=True)
    following = Following(heir, job)
    following.has(rb"line 30\n")
    until(lambda: bucket.names(f"logs/{job['id']}/") or None, "first part of the log")
    victim.vanish()
    shutil.rmtree(victim.data / "blobs")
    pair.until_led_by(heir)
    last = int(re.findall(rb"line (\d+)\n", following.seen)[-1])
    following.has(rb"line %d\n" % (last + 30))
    told = heir.client.exec(job["id"], "main", 0, ["sh", "-c", ": >/dev/shm/over"])
    assert (list(told), told.exit_code) == ([], 0)
    assert heir.ended(job)["state"] == "succeeded"
    seen = following.ended()
    count = int(seen.split()[-1])
    assert seen == b"".join(b"line %d\n" % (number + 1) for number in range(count)) + b"over after %d\n" % count
    until(lambda: [name for name in bucket.names(f"logs/{job['id']}/") if name.endswith(".end")] or None, "whole log")
    until(lambda: not heir.pods() or None, "deletion of the pod, whose log is archived")
    (victim.data / "blobs" / "code").mkdir(parents=True)
    (victim.data / "blobs" / "logs").mkdir()
    victim.up_again()
    assert victim.log(job, "main-0").encode() == seen, "from the store alone"


def test_nobody_but_the_server_has_what_opens_the_store(pair: Pair, here: dict[str, Any]) -> None:
    job = pair.leading().submit(one("looks", "env | grep -c AWS_ || true", role=here), wait_for_capacity=True)
    assert pair.leading().ended(job)["state"] == "succeeded"
    assert pair.other().log(job, "main-0") == "0\n"
