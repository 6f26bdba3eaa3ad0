"""Jobs on YARN whose code, data, models and logs live in HDFS: the PyTorch demo, and a v1 job of OpenPAI's."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import signal
import sys
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import httpx2
import pytest

from tests.endtoend.platform import ROOT, Job
from tests.engines.yarn.served import OnYarn, agents_of, until
from tests.frameworks.environments import WITHOUT_COMPILER, environment
from tests.testbeds.hadoop import jars
from tests.testbeds.hadoop.yarn import Yarn

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(600)]
IMAGES = 800
"""Images in HDFS, of scikit-learn's 1,797: so the log shows which ones were used."""
HOME = "/user/ada"
WORKERS = [f"worker-{index}" for index in range(4)]
_HELD = '''\
"""The demo, which rests after each epoch for as long as the test says."""

import os
import time
import types

import train


def rest(seconds):
    while os.path.exists(os.environ["HOLD"]):
        time.sleep(0.02)


train.time = types.SimpleNamespace(sleep=rest, monotonic=time.monotonic)
train.main()
'''
_TRAIN = """\
set -e
echo "user $PAI_USERNAME/$PAI_USER_NAME job $PAI_JOB_NAME files $PAI_DEFAULT_FS_URI vc $PAI_VIRTUAL_CLUSTER"
echo "dirs $PAI_CODE_DIR $PAI_DATA_DIR $PAI_OUTPUT_DIR"
echo "role $PAI_CURRENT_TASK_ROLE_NAME $PAI_TASK_INDEX of $PAI_TASK_ROLE_LIST, $PAI_TASKS_NUM tasks"
echo "gpus $PAI_CURRENT_TASK_ROLE_GPU_COUNT of $CORRAL_DEVICES"
echo "peers $PAI_TASK_ROLE_ps_server_HOST_LIST $PAI_TASK_ROLE_worker_HOST_LIST"
hdfs dfs -get "$PAI_DATA_DIR" data
mkdir out
wc -l <data/digits.csv >out/lines
hdfs dfs -put out "$PAI_OUTPUT_DIR"
"""


class WithData(OnYarn):
    """A server whose only engine is YARN, and whose code and logs are in HDFS; all tasks run as Ada."""

    def __init__(self, folder: Path, yarn: Yarn) -> None:
        stage = f"env PYTHONPATH={ROOT} {sys.executable} -m corral.storage stage"
        super().__init__(folder, yarn, "--yarn-users", "*=ada", "--blobs", f"{yarn.hdfs.web}/blobs")
        self.env |= {"CORRAL_OPENPAI_FS_URI": yarn.hdfs.native, "CORRAL_YARN_STAGE_COMMAND": stage}
        self.env |= {"CORRAL_RETRY_FIRST": "0", "CORRAL_TRANSIENT_FLOOR": "0"}

    def options(self, port: str = "") -> list[str]:
        """The options, without the local engine: its container runtime would run a v1 job's image."""
        words = super().options(port)
        at = words.index("local")
        return [*words[: at - 1], *words[at + 1 :]]


@pytest.fixture(scope="module")
def digits(yarn: Yarn) -> bytes:
    """The images, which are in HDFS with the demo's program."""
    python = environment("pytorch")
    (packages,) = python.parent.glob("lib/python3*/site-packages")
    with gzip.open(packages / "sklearn" / "datasets" / "data" / "digits.csv.gz") as file:
        content = b"".join(file.readlines()[:IMAGES])
    yarn.hdfs.add_folder(HOME, "ada")
    yarn.hdfs.write(f"{HOME}/digits/digits.csv", content)
    yarn.hdfs.write(f"{HOME}/code/train.py", (ROOT / "examples" / "pytorch" / "train.py").read_bytes())
    yarn.hdfs.write(f"{HOME}/code/held.py", _HELD.encode())
    yarn.hdfs.write(f"{HOME}/program/train.sh", _TRAIN.encode())
    return content


@pytest.fixture(scope="module")
def platform(yarn: Yarn, digits: bytes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WithData]:
    made = WithData(tmp_path_factory.mktemp("server"), yarn)
    made.up()
    yield made
    made.down()


@pytest.fixture
def server(platform: WithData) -> Iterator[WithData]:
    """The same server for each test, with the former test's jobs removed, also if that test failed."""
    yield platform
    platform.clear()


def demo(yarn: Yarn, kept: Path) -> dict[str, Any]:
    """The demo as a gang of four, two on each node, with its files in HDFS."""
    where = f"--data ../given/digits.csv --checkpoint {kept}/checkpoint.pt --output ../made"
    role = {
        "replicas": 4,
        "resources": {"cpu": "1", "memory": "2560Mi", "devices": 1},  # so much memory that a node takes two
        "command": f"mkdir -p made && cd code && echo devices $CORRAL_DEVICES && exec python held.py --epochs 3 {where}",
    }
    return {
        "name": "digits",
        "framework": "pytorch",
        "roles": {"worker": role},
        "env": {"PATH": f"{environment('pytorch')}:/usr/bin:/bin", "PYTHONPATH": str(WITHOUT_COMPILER)}
        | {"HOLD": str(kept / "hold"), "OMP_NUM_THREADS": "1"},
        "inputs": [
            {"uri": f"{yarn.hdfs.native}{HOME}/code", "path": "code"},
            {"uri": f"{yarn.hdfs.web}{HOME}/digits", "path": "given"},
        ],
        "outputs": [{"path": "made", "uri": f"{yarn.hdfs.native}{HOME}/model"}],
        "retry": {"maxRetries": 1},
    }


def test_a_gang_learns_from_hdfs_and_goes_on_when_a_container_was_killed(
    server: WithData, yarn: Yarn, digits: bytes, tmp_path: Path
) -> None:
    (tmp_path / "hold").touch()
    job = server.submit(demo(yarn, tmp_path))
    server.printed(job, "worker-0", r"epoch 1/3 ")
    tasks = server.tasks(job)
    assert sorted(task["node"] for task in tasks.values()) == ["yarn/nm1", "yarn/nm1", "yarn/nm2", "yarn/nm2"]
    given: dict[str, list[str]] = {}
    for name, task in tasks.items():
        given.setdefault(task["node"], []).append(server.printed(job, name, r"devices (\d+)\n")[1])
    assert all(len(set(each)) == 2 for each in given.values()), given

    for agent in until(lambda: agents_of(server.attempts(job, "worker-3")[0]["id"]) or None):
        os.kill(agent, signal.SIGKILL)
    until(lambda: True if len(server.attempts(job, "worker-0")) == 2 else None)
    (tmp_path / "hold").unlink()
    ended = server.ended(job)
    log = server.log(job, "worker-0")
    assert (ended["state"], ended["exit"]["code"]) == ("succeeded", 0), log
    assert f"training on {IMAGES * 3 // 4} images with 4 processes from epoch 2" in log
    assert float(re.findall(r"epoch 3/3 loss \S+ accuracy (\S+) processes 4", log)[0]) > 0.8
    assert [each["exit"]["code"] for each in server.attempts(job, "worker-3")] == [-101, 0]
    model = zipfile.ZipFile(BytesIO(yarn.hdfs.read(f"{HOME}/model/model.pt")))
    assert model.testzip() is None and any(name.endswith("data.pkl") for name in model.namelist())
    assert yarn.hdfs.owner(f"{HOME}/model/model.pt") == "ada"
    assert yarn.hdfs.names(f"{HOME}/model") == ["model.pt"]
    server.gone(job)
    logs_are_in_hdfs(server, job)


def logs_are_in_hdfs(server: WithData, job: Job) -> None:
    """The logs of an ended job are in HDFS, whole, and are read through the API when the server's disk has none."""
    folder, hdfs = f"/blobs/logs/{job['id']}", server.yarn.hdfs

    def complete() -> bool | None:
        try:
            logs = hdfs.names(folder)
        except HTTPError as error:
            if error.code != 404:
                raise
            return None  # no log was copied yet
        ended = [any(name.endswith(".end") for name in hdfs.names(f"{folder}/{each}")) for each in logs]
        return True if len(ended) == 2 * len(WORKERS) and all(ended) else None

    until(complete, 120)
    before = {task: server.log(job, task) for task in WORKERS}
    assert "model saved" in before["worker-0"]
    shutil.rmtree(server.data / "blobs" / "logs" / job["id"])
    assert {task: server.log(job, task) for task in WORKERS} == before


def test_a_v1_job_has_its_folders_in_hdfs_and_its_variables(
    server: WithData, yarn: Yarn, digits: bytes, tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "hdfs"
    program.parent.mkdir()
    shell = " ".join(jars.command("org.apache.hadoop.fs.FsShell", yarn.home / "conf"))
    program.write_text(f'#!/bin/sh\nshift\nHADOOP_USER_NAME=ada exec {shell} "$@"\n')
    program.chmod(0o755)
    user = str(server.client.me()["user"])
    run = f"export PATH={program.parent}:$PATH && bash program/train.sh"
    base = "$PAI_DEFAULT_FS_URI/user/ada"
    document = {
        "jobName": "tensorflow-distributed-cifar10",
        "image": "openpai/pai.example.tensorflow",
        "dataDir": f"{base}/digits",
        "outputDir": f"{base}/output-of-$PAI_USERNAME",
        "codeDir": f"{base}/program",
        "taskRoles": [
            {"name": "ps_server", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 256, "command": "sleep 1000"},
            {
                "name": "worker",
                "taskNumber": 1,
                "cpuNumber": 1,
                "memoryMB": 256,
                "gpuNumber": 2,
                "command": run,
                "minSucceededTaskCount": 1,
            },
        ],
    }
    headers = {"Authorization": f"Bearer {server.client.token}"}
    path = f"/api/v1/user/{user}/jobs"
    with httpx2.Client(base_url=server.url, headers=headers, trust_env=False, timeout=60) as http:
        assert (answer := http.post(path, json=document)).status_code == 202, answer.text
        job = server.client.jobs(limit=1)["items"][0]
        assert server.ended(job["id"])["state"] == "succeeded", server.log(job["id"])
        status = http.get(f"{path}/{document['jobName']}").json()["jobStatus"]
    assert (status["state"], status["appExitCode"]) == ("SUCCEEDED", 0)
    log, fs = server.log(job["id"], "worker-0"), yarn.hdfs.native
    folders = f"{fs}{HOME}/program {fs}{HOME}/digits {fs}{HOME}/output-of-{user}"
    for line in (
        f"user {user}/{user} job {user}~{document['jobName']} files {fs} vc default",
        f"dirs {folders}",
        "role worker 0 of ps_server,worker, 2 tasks",
    ):
        assert line in log, log
    assert re.search(r"gpus 2 of \d,\d\npeers \S+:\d+ \S+:\d+\n", log), log
    assert yarn.hdfs.read(f"{HOME}/output-of-{user}/lines") == f"{IMAGES}\n".encode()
