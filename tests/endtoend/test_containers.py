"""Tasks with an image run in real containers; without a container runtime they are refused at submission."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator

import pytest

from corral.runtime.task_processes import lives
from tests.endtoend.platform import Platform, one
from tests.testbeds.docker import DockerDaemon, missing
from tests.waiting import pause

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
def server(docker: DockerDaemon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    made = Platform(tmp_path_factory.mktemp("containers"), env={"DOCKER_HOST": docker.host})
    made.up()
    yield made
    made.down()


def test_a_task_runs_in_its_image(platform: Platform, docker: DockerDaemon) -> None:
    role = {"env": {"COLOUR": "teal"}, "resources": {"cpu": "0.5", "memory": "64Mi", "devices": 2}}
    command = "echo $COLOUR; [ -e /etc/os-release ] || echo elsewhere; env; echo kept > out; exit 4"
    job = platform.ran(one("boxed", command, image=IMAGE, role=role))
    log = platform.log(job)
    assert job["state"] == "failed" and job["exit"]["code"] == 4, log
    assert log.startswith("teal\nelsewhere\n")
    assert "CORRAL_DEVICES=" in log and "VISIBLE_DEVICES" not in log
    assert docker.containers() == []


def test_code_secrets_and_data_reach_a_container(platform: Platform, docker: DockerDaemon) -> None:
    folder = platform.folder / "code"
    folder.mkdir()
    (folder / "greet.sh").write_text("echo $1 ${#HUB} $(wc -c < token); echo made > result\n")
    (folder / "data").mkdir()
    platform.client.put_secret("hub", "s3cret-of-the-hub")
    document = one(
        "fed",
        ["sh", "greet.sh", "hello"],
        image=IMAGE,
        code=".",
        secrets=[{"name": "hub", "env": "HUB"}, {"name": "hub", "file": "token"}],
        outputs=[{"path": "result", "uri": f"file://{folder}/kept"}],
    )
    (folder / "job.yaml").write_text(json.dumps(document))
    assert platform.corral("submit", "-f", "job.yaml", folder=folder).startswith("hello 17 17\n")
    assert (folder / "kept").read_text() == "made\n"


def test_a_container_is_entered_and_stopped(platform: Platform, docker: DockerDaemon) -> None:
    command = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.1; done"
    job = platform.submit(one("inside", command, image=IMAGE))
    platform.printed_running(job, "main-0", "up\n")
    assert len(docker.containers()) == 1
    inside = "[ -e /etc/os-release ] || echo elsewhere"
    assert platform.corral("exec", "inside", "main-0", "--", "sh", "-c", inside) == "elsewhere\n"
    platform.corral("stop", "--wait", "inside")
    assert platform.client.job(job["id"])["state"] == "stopped"
    assert platform.log(job).endswith("bye\n")
    assert docker.containers() == []


def test_a_container_outlives_a_killed_server_and_its_true_code_is_kept(
    platform: Platform, docker: DockerDaemon
) -> None:
    gate = "go"
    command = f"echo $CORRAL_ATTEMPT; until [ -e {gate} ]; do sleep 0.1; done; echo on; exit 6"
    job = platform.submit(one("adopted", command, image=IMAGE))
    attempt = platform.printed_running(job, "main-0", r"(\S+)\n")[1]
    (name,) = docker.containers()
    os.kill(platform.pid, signal.SIGKILL)
    begun = time.monotonic()
    while lives(platform.pid):  # else the next server is told that this one runs
        assert time.monotonic() - begun < 120
        time.sleep(pause(begun))
    platform.up_again()
    assert docker.containers() == [name]
    assert platform.client.job(job["id"])["state"] == "running"
    platform.corral("exec", "adopted", "main-0", "--", "touch", gate)
    ended = platform.ended(job)
    assert ended["state"] == "failed" and ended["exit"]["code"] == 6
    assert platform.log(job) == f"{attempt}\non\n"
    assert len(platform.attempts(ended, "main-0")) == 1 and docker.containers() == []


def test_a_container_that_ends_while_no_server_runs_keeps_its_code(platform: Platform, docker: DockerDaemon) -> None:
    command = "echo up; until [ -e go ]; do sleep 0.1; done; exit 8"
    job = platform.submit(one("alone", command, image=IMAGE))
    platform.printed(job, "main-0", "up\n")
    (name,) = docker.containers()
    platform.corral("down", "--data", str(platform.data))
    docker.client("exec", "--detach", name, "touch", "go")  # the container may end before this does
    platform.up_again()
    ended = platform.ended(job)
    assert (ended["state"], ended["exit"]["code"]) == ("failed", 8)


def test_an_image_that_is_not_there_fails_and_names_it(platform: Platform) -> None:
    job = platform.ran(one("nowhere", "true", image="localhost:1/no/such:image"))
    assert job["state"] == "failed"
    assert "no/such" in platform.log(job) + job["exit"]["message"]


def test_a_container_over_its_memory_is_ended(platform: Platform) -> None:
    role = {"resources": {"cpu": "0.5", "memory": "32Mi"}}
    command = "x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done"
    job = platform.ran(one("swollen", command, image=IMAGE, role=role))
    assert job["state"] == "failed" and job["exit"]["code"] == -1200, job["exit"]


def test_an_image_is_refused_where_no_runtime_is(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("bare")
    platform = Platform(folder, env={"DOCKER_HOST": f"unix://{folder}/nobody.sock", "CONTAINER_HOST": "unix:///none"})
    platform.up()
    try:
        text = json.dumps(one("imaged", "echo plain", image=IMAGE))
        said = platform.refused("submit", "-", given=text)
        assert IMAGE in said and "--no-image" in said
        assert platform.corral("ls", "-o", "name") == ""
        assert platform.corral("submit", "-f", "--no-image", "-", given=text) == "plain\n"
    finally:
        platform.down()
