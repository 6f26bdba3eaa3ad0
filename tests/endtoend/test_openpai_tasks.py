"""OpenPAI jobs on a real server: in containers of an image that has only a shell, and as processes."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from tests.endtoend.platform import Job, Platform
from tests.frameworks.openpai_tasks import plugin, protocol, with_plugins
from tests.testbeds.docker import DockerDaemon, missing

pytestmark = pytest.mark.timeout(300)
IMAGE = "corral-test/busybox:1"


@pytest.fixture(scope="module")
def docker() -> Iterator[DockerDaemon]:
    if absent := missing():
        pytest.skip(f"no container can run here: {absent}")
    daemon = DockerDaemon()
    try:
        daemon.import_busybox(IMAGE)
        yield daemon
    finally:
        daemon.close()


@pytest.fixture(scope="module")
def containers(docker: DockerDaemon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    made = Platform(tmp_path_factory.mktemp("openpai-containers"), env={"DOCKER_HOST": docker.host})
    made.up()
    yield made
    made.down()


@pytest.fixture
def boxed(containers: Platform) -> Iterator[Platform]:
    yield containers
    containers.clear()


def in_image(said: dict[str, Any], image: str = IMAGE) -> str:
    """The protocol as a file, with another image."""
    said["prerequisites"][0]["uri"] = image
    return yaml.safe_dump(said, sort_keys=False)


def ran(platform: Platform, text: str) -> Job:
    return platform.ended(str(platform.client.submit(text)["id"]))


def ran_without_image(platform: Platform, said: dict[str, Any]) -> Job:
    """Run a job whose tasks are plain processes; returns the ended job."""
    text = yaml.safe_dump(said, sort_keys=False)
    return platform.ended(str(platform.client.submit(text, no_image=True)["id"]))


def printed(platform: Platform, job: Job, task: str, stream: str = "stdout") -> str:
    role, _, index = task.rpartition("-")
    pieces = platform.client.log(job["id"], role, int(index), stream=stream, prefix=False)
    return b"".join(pieces).decode()


def test_tasks_in_containers_find_each_other_and_their_secrets(boxed: Platform) -> None:
    secrets = {"token": "s3cret-in-a-box"}
    before = plugin("cmd", preCommands=["export FROM_PLUGIN=<% $secrets.token %>"], postCommands=["echo after"])
    commands = ["env", "echo told $FROM_PLUGIN <% $secrets.token %>", "ls /.dockerenv"]
    said = protocol(commands, roles={"Work_er": {"instances": 2}}, secrets=secrets, extras=with_plugins(before))
    job = ran(boxed, in_image(said))
    assert job["state"] == "succeeded", printed(boxed, job, "work-er-0", "stderr")
    out = printed(boxed, job, "work-er-1")
    env = dict(re.findall(r"^(PAI_\w+)=(.*)$", out, re.MULTILINE))
    hosts = env["PAI_TASK_ROLE_Work_er_HOST_LIST"].split(",")
    assert hosts == [f"127.0.0.1:{env[f'PAI_Work_er_{index}_http_PORT']}" for index in range(2)]
    assert env["PAI_CONTAINER_HOST_PORT"] == env["PAI_Work_er_1_http_PORT"]
    assert env["PAI_JOB_NAME"].endswith("~a_job") and env["PAI_IN_IMAGE"] == "1"
    assert "told s3cret-in-a-box s3cret-in-a-box" in out and out.endswith("/.dockerenv\nafter\n")
    assert "s3cret-in-a-box" not in json.dumps(boxed.client.job(job["id"]))
    boxed.forgotten()
    assert not holds(boxed.data, b"s3cret-in-a-box", but="logs")


def holds(folder: Path, text: bytes, *, but: str) -> list[Path]:
    """The server's files that contain a text, except the logs of tasks."""
    found = []
    for file in folder.rglob("*"):
        if file.is_file() and but not in file.parts and text in file.read_bytes():
            found.append(file)
    return found


def test_the_end_of_a_container_tells_why_in_openpais_words(boxed: Platform) -> None:
    commands = ["echo 'RuntimeError: CUDA out of memory. Tried 1 MiB' >&2", "exit 1"]
    job = ran(boxed, in_image(protocol(commands, name="out-of-memory")))
    assert job["state"] == "failed" and job["exit"]["code"] == 226
    (attempt,) = boxed.attempts(job, "worker-0")
    told = "the command ended with 1; its log says: RuntimeError: CUDA out of memory. Tried 1 MiB"
    assert attempt["exit"]["message"] == told
    token = {"Authorization": f"Bearer {boxed.client.token}"}
    detail = httpx2.get(f"{boxed.url}/api/v2/jobs/{job['user']}~out-of-memory", headers=token, trust_env=False).json()
    messages = detail["jobStatus"]["appExitMessages"]
    assert messages["container"] == told
    assert messages["runtime"] == {
        "exitCode": 226,
        "trigger": "ContainerCudaOOMKilled",
        "originUserExitCode": 1,
        "matchedUserLogString": "RuntimeError: CUDA out of memory. Tried 1 MiB",
        "errorLogs": {"user": "RuntimeError: CUDA out of memory. Tried 1 MiB"},
    }


def test_an_image_that_cannot_be_had_has_a_code_of_its_own(boxed: Platform) -> None:
    job = ran(boxed, in_image(protocol(["true"]), image="corral-test/NO-such"))
    assert job["exit"]["code"] == 254, boxed.attempts(job, "worker-0")


def test_a_container_is_asked_to_end_and_what_it_runs_hears_of_it(boxed: Platform) -> None:
    after = plugin("cmd", postCommands=["echo never"])
    commands = ["trap 'echo bye; exit 0' TERM", "echo up", "while :; do sleep 0.1; done"]
    for extras in ({}, with_plugins(after)):
        said = protocol(commands, name=f"asked-{len(extras)}", extras=extras)
        job = boxed.client.submit(in_image(said))
        for piece in boxed.client.log(job["id"], "worker", 0, stream="stdout", follow=True):
            if b"up" in piece:
                break
        boxed.client.stop(job["id"])
        ended = boxed.ended(str(job["id"]))
        assert printed(boxed, ended, "worker-0").startswith("up\nbye\n")


def test_streams_have_logs_of_their_own_and_both_are_in_the_whole(platform: Platform) -> None:
    job = ran_without_image(platform, protocol(["echo out", "echo err >&2"], name="streams"))
    assert printed(platform, job, "worker-0", "stdout") == "out\n"
    assert printed(platform, job, "worker-0", "stderr") == "err\n"
    assert sorted(platform.log(job).splitlines()) == ["err", "out"]
    assert sorted(platform.corral("logs", str(job["id"]), "worker-0").splitlines()) == ["err", "out"]


def test_a_log_is_followed_from_before_its_task_runs(platform: Platform) -> None:
    text = yaml.safe_dump(protocol(["sleep 1", "echo said", "echo err >&2"], name="early"), sort_keys=False)
    job = platform.client.submit(text, no_image=True)
    for stream, wanted in (("stdout", ["said"]), ("stderr", ["err"]), ("", ["err", "said"])):
        pieces = platform.client.log(job["id"], "worker", 0, stream=stream, follow=True, prefix=False)
        assert sorted(b"".join(pieces).decode().splitlines()) == wanted


@pytest.mark.skipif(not shutil.which("sshd", path="/usr/sbin:/usr/bin"), reason="apt-get install openssh-server")
def test_tasks_of_the_local_engine_enter_each_other_by_ssh(platform: Platform, tmp_path: Path) -> None:
    ssh = plugin("ssh", jobssh=True, sshbarrier=True)
    commands = [
        "ssh worker-$((1 - PAI_TASK_INDEX)) 'echo entered; touch \"$PAI_SSH_SEEN/entered\"' || exit 1",
        f"touch {tmp_path}/$PAI_TASK_INDEX",  # a task's end stops its sshd: no session may be open any more
        f"until [ -e {tmp_path}/$((1 - PAI_TASK_INDEX)) ]; do sleep 0.1; done",
        '[ -e "$PAI_RUNTIME_DIR/ssh/seen/entered" ]',
    ]
    said = protocol(commands, roles={"worker": {"instances": 2}}, extras=with_plugins(ssh))
    job = ran_without_image(platform, said)
    assert job["state"] == "succeeded", platform.log(job)
    assert printed(platform, job, "worker-0") == printed(platform, job, "worker-1") == "entered\n"


def test_a_job_retried_runs_its_whole_gang_again(platform: Platform) -> None:
    said = protocol(["exit $((128 + PAI_TASK_INDEX))"], roles={"worker": {"instances": 2}}, jobRetryCount=1)
    job = ran_without_image(platform, said | {"name": "again"})
    assert job["state"] == "failed" and job["attempt"] >= 1


def test_the_store_never_holds_a_secret_in_clear(platform: Platform) -> None:
    commands = ["echo '<% $secrets.key %>' | tr a-z A-Z"]
    said = protocol(commands, name="sealed", secrets={"key": "not-in-any-table"})
    job = ran_without_image(platform, said)
    assert printed(platform, job, "worker-0") == "NOT-IN-ANY-TABLE\n"
    with sqlite3.connect(platform.data / "corral.db") as store:
        assert "not-in-any-table" not in "\n".join(store.iterdump())
