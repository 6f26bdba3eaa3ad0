"""A task with an image becomes one container command; it really runs where a container runtime answers."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from corral.compat.openpai.language.names import REGISTRIES_FILE
from corral.devices import device_files
from corral.engines.local import command_line, processes, reaper
from corral.engines.local.containers import (
    Container,
    container_name,
    container_runtime,
    device_options,
    exec_command,
    run_command,
)
from corral.engines.local.live_attempt import FOLDER_GONE
from corral.kernel.errors import Unavailable
from corral.model.inventory import Device
from corral.model.launch import RuntimePlan, SecretDelivery, Started
from corral.model.storages import Mount
from tests.engines.local_harness import Harness, attempt, collect, launch, until
from tests.testbeds import docker, registry

HERE = Container(
    "/usr/bin/docker", "corral-x", 1000, "/a/work", "/a/work/src", "/a/private/entry", attempts="/e/attempts"
)


def test_the_command_line_has_limits_mounts_user_and_no_value_of_a_variable() -> None:
    task = launch(
        "python",
        "train.py",
        image="team/train:1",
        cpu_millis=1500,
        memory_bytes=1 << 30,
        shm_bytes=1 << 20,
        secrets=(SecretDelivery("hunter2", env="PASSWORD"),),
    )
    argv = run_command(HERE, task)
    assert argv == [
        "/usr/bin/docker", "run", "--init", "--name=corral-x", "--network=host",
        "--label=corral.dev/attempts=/e/attempts",
        "--volume=/a/work:/a/work", "--workdir=/a/work/src",
        "--volume=/a/private/entry:/a/private/entry:ro", "--user=1000:1000", "--security-opt=no-new-privileges",
        f"--memory={1 << 30}", f"--memory-swap={1 << 30}", "--cpus=1.5", f"--shm-size={1 << 20}",
        "--entrypoint=sh", "team/train:1", "/a/private/entry", "python", "train.py",
    ]  # fmt: skip
    plain = run_command(HERE._replace(uid=-1), launch("true", image="i"))
    assert not any(word.startswith(("--user", "--memory", "--cpus", "--shm")) for word in plain)


@pytest.mark.parametrize(
    ("program", "begins"),
    [
        ("/usr/bin/docker", ["/usr/bin/docker", "--config=/a/private", "run"]),
        ("/usr/bin/podman", ["/usr/bin/podman", "run", "--authfile=/a/private/config.json"]),
    ],
)
def test_what_opens_a_registry_is_told_to_the_client_as_a_file(program: str, begins: list[str]) -> None:
    container = HERE._replace(runtime=program, registries="/a/private/config.json")
    logins = SecretDelivery("hunter2", file=".openpai/registries")
    task = launch("true", image="i", secrets=(logins,))
    argv = run_command(container, task)
    assert argv[: len(begins)] == begins and "hunter2" not in " ".join(argv)
    assert task.registries == "hunter2" and not task.given_secrets and not task.kept_secrets


def test_devices_are_handed_over_by_vendor_and_described_ones_are_not() -> None:
    assert device_options([Device(0, "GPU-a"), Device(3, "GPU-b")]) == ['--gpus="device=GPU-a,GPU-b"']
    assert "--device=/dev/kfd" in device_options([Device(0, "x", model="AMD gfx90a")])
    assert "--device=/dev/davinci2" in device_options([Device(2, "x", kind="npu")])
    assert device_options([Device(0, "GPU-a", described=True)]) == []


def test_a_container_has_the_groups_of_its_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_files, "groups", lambda devices: (1105, 1106))
    options = device_options([Device(0, "x", model="AMD gfx90a")])
    assert options[-2:] == ["--group-add=1105", "--group-add=1106"]


def test_sessions_name_the_container() -> None:
    assert exec_command("c", "docker", ["ls"], tty=True) == ["docker", "exec", "--interactive", "--tty", "c", "ls"]
    assert container_name(attempt()) == f"corral-{attempt()}"


@pytest.mark.parametrize(
    ("script", "found"), [("echo 24.0", True), ("echo cannot connect >&2; exit 1", False), ("exit 0", False)]
)
def test_a_runtime_counts_only_when_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, found: bool
) -> None:
    program = tmp_path / "docker"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert container_runtime(("docker",)) == (str(program) if found else None)
    assert container_runtime(("no-such-runtime",)) is None


async def test_an_image_without_a_runtime_is_not_started(local: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    local.engine._tools.find_container_runtime = lambda: None
    with pytest.raises(Unavailable, match="Neither Docker nor Podman"):
        await local.engine.start(launch("true", image="busybox"))
    assert local.engine.attempts() == frozenset()


@pytest.fixture(scope="module")
def daemon() -> Iterator[docker.DockerDaemon]:
    if absent := docker.missing():
        pytest.skip(f"no container can run here: {absent}")
    made = docker.DockerDaemon()
    yield made
    made.close()


@pytest.fixture(scope="module")
def image(daemon: docker.DockerDaemon) -> str:
    daemon.import_busybox("corral-test")
    return "corral-test"


@pytest.fixture
async def docked(
    tmp_path: Path, daemon: docker.DockerDaemon, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Harness]:
    monkeypatch.setenv("DOCKER_HOST", daemon.host)
    async with Harness(tmp_path) as harness:
        yield harness


async def test_a_task_runs_in_its_image_with_its_folder_and_variables(docked: Harness, image: str) -> None:
    script = "echo $COLOUR $CORRAL_ROLE; pwd; echo kept >made; cat /proc/1/comm; exit 4"
    end = await docked.run("sh", "-c", script, image=image, env={"COLOUR": "teal"}, memory_bytes=64 << 20)
    assert end.code == 4, docked.log()
    first, folder, _ = docked.log().splitlines()
    assert first == "teal worker" and folder.endswith(f"{attempt()}/work")
    assert Path(folder, "made").read_text() == "kept\n"


async def test_variables_of_the_job_never_reach_the_servers_own_client(docked: Harness, image: str) -> None:
    traps = {"LD_PRELOAD": "/no/such.so", "DOCKER_HOST": "unix:///nowhere", "PATH": "/bin", "TWO": "a\nb'c"}
    end = await docked.run("sh", "-c", 'echo "$DOCKER_HOST|$TWO"', image=image, env=traps)
    assert end.code == 0 and "unix:///nowhere|a\nb'c\n" in docked.log()


async def test_an_image_is_pulled_with_what_the_job_has_for_its_registry(
    docked: Harness, image: str, daemon: docker.DockerDaemon, tmp_path: Path
) -> None:
    if reason := registry.missing():
        pytest.skip(reason)
    private = registry.Registry(tmp_path / "registry")
    named = f"{private.address}/private/three:1"
    logins = private.secret("any")["stringData"][".dockerconfigjson"]
    folder = tmp_path / "logins"
    folder.mkdir()
    (folder / "config.json").write_text(logins)
    try:
        for words in (["tag", image, named], ["--config", str(folder), "push", named], ["rmi", named]):
            subprocess.run(["docker", "--host", daemon.host, *words], check=True, capture_output=True)
        refused = await docked.run("true", image=named)
        assert refused.code == 125, docked.log()
        opened = (SecretDelivery(logins, file=REGISTRIES_FILE),)
        end = await docked.run("sh", "-c", "ls -a .openpai || echo pulled", image=named, secrets=opened, task=1)
        assert end.code == 0, docked.log(attempt(1))
        assert "pulled" in docked.log(attempt(1)) and "registries" not in docked.log(attempt(1))
    finally:
        private.close()


async def test_secrets_reach_a_container_and_not_its_command_line(docked: Harness, image: str) -> None:
    secrets = (SecretDelivery("hunter2", env="PASSWORD", file="key"),)
    end = await docked.run("sh", "-c", "echo $PASSWORD; cat key", image=image, secrets=secrets)
    assert end.code == 0 and docked.log() == "hunter2\nhunter2"


UID = 54_321


@pytest.fixture
async def for_ada(daemon: docker.DockerDaemon, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Harness]:
    """A server that is root and runs ada's containers under her own uid."""
    if os.getuid() != 0:
        pytest.skip("only root can start tasks as other users; run as root")
    monkeypatch.setenv("DOCKER_HOST", daemon.host)
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o711)
    async with Harness(folder, uid_of=lambda user: UID) as harness:
        yield harness
    shutil.rmtree(folder)


async def test_a_users_container_has_its_folder_and_secrets_and_gains_no_privileges(
    for_ada: Harness, image: str
) -> None:
    secrets = (SecretDelivery("hunter2", file="keys/one"),)
    script = "id -u; cat keys/one; echo; touch keys/made made; grep NoNewPrivs /proc/self/status"
    end = await for_ada.run("sh", "-c", script, image=image, secrets=secrets)
    assert end.code == 0, for_ada.log()
    assert for_ada.log().split() == [str(UID), "hunter2", "NoNewPrivs:", "1"]
    work = for_ada.folder / "engine/attempts" / attempt() / "work"
    assert {path.stat().st_uid for path in (work, work / "made", work / "keys", work / "keys/one")} == {UID}
    private = work.parent / "private"
    assert (private.stat().st_uid, (private / "entry").stat().st_uid) == (os.getuid(), UID)


async def test_an_absolute_working_directory_of_a_container_is_not_this_machines(for_ada: Harness, image: str) -> None:
    ours = for_ada.folder / "ours"
    ours.mkdir(mode=0o700)
    (ours / "kept").write_text("by root")
    end = await for_ada.run("sh", "-c", "pwd; ls", image=image, working_dir=str(ours))
    assert (end.code, for_ada.log().split()) == (0, [str(ours)])
    assert [path.stat().st_uid for path in (ours, ours / "kept")] == [0, 0]


async def test_data_of_a_container_is_moved_by_who_the_task_is_of(
    for_ada: Harness, image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_line, "STAGE_COMMAND", ("sh", "-c", 'cp "${1#file://}" "${2#file://}"', "sh"))
    monkeypatch.setattr(command_line, "_open_to_all", lambda program: True)
    hers, ours = for_ada.folder / "hers", for_ada.folder / "ours"
    for folder, owner in ((hers, UID), (ours, 0)):
        folder.mkdir(mode=0o700)
        (folder / "data").write_text("words")
        for path in (folder, folder / "data"):
            os.chown(path, owner, owner)
    plan = RuntimePlan(inputs=((f"file://{hers}/data", "in"),), outputs=(("out", f"file://{hers}/kept"),))
    end = await for_ada.run("sh", "-c", "cat in; cp in out", image=image, runtime=plan)
    assert (end.code, for_ada.log()) == (0, "words")
    assert (hers / "kept").stat().st_uid == UID
    for task, refused in enumerate(
        (
            RuntimePlan(inputs=((f"file://{ours}/data", "in"),)),
            RuntimePlan(outputs=(("out", f"file://{ours}/kept"),)),
        ),
        1,
    ):
        end = await for_ada.run("sh", "-c", "echo words >out", image=image, runtime=refused, task=task)
        assert end.code == 255 and "could not be moved" in for_ada.log(attempt(task))
    assert sorted(os.listdir(ours)) == ["data"]


async def test_a_container_finds_its_storages_at_their_paths(for_ada: Harness, image: str) -> None:
    for name in ("shared", "homes"):
        (for_ada.folder / name).mkdir(mode=0o755)
    (for_ada.folder / "shared/given").write_text("given\n")
    storages = (
        Mount("shared", "folder", "/mnt/shared", source=f"{for_ada.folder}/shared", read_only=True),
        Mount("homes", "folder", "/home/mine", source=f"{for_ada.folder}/homes", folder="ada"),
    )
    script = "cat /mnt/shared/given; echo kept >/home/mine/kept; touch /mnt/shared/x 2>/dev/null || echo refused"
    end = await for_ada.run("sh", "-c", script, image=image, storages=storages)
    assert (end.code, for_ada.log()) == (0, "given\nrefused\n")
    kept = for_ada.folder / "homes/ada/kept"
    assert (kept.read_text(), kept.stat().st_uid) == ("kept\n", UID)


async def test_what_a_container_has_of_a_uri_is_moved_around_it(docked: Harness, image: str, tmp_path: Path) -> None:
    (tmp_path / "bucket").mkdir()
    (tmp_path / "bucket/far").write_text("far\n")
    storages = (Mount("bucket", "uri", "/data", source=f"file://{tmp_path}/bucket"),)
    script = "tr a-z A-Z </data/far >/data/back"
    end = await docked.run("sh", "-c", script, image=image, storages=storages, runtime=RuntimePlan())
    assert end.code == 0, docked.log()
    assert (tmp_path / "bucket/back").read_text() == "FAR\n"


async def test_a_session_is_opened_inside_and_a_stop_ends_the_container(
    docked: Harness, image: str, daemon: docker.DockerDaemon
) -> None:
    await docked.engine.start(
        launch("sh", "-c", "trap 'exit 7' TERM; echo up; while :; do sleep 0.1; done", image=image)
    )
    await docked.line("up")
    session = await docked.engine.exec(attempt(), ["sh", "-c", "echo inside; pwd"], tty=False)
    assert (await collect(session.output())).startswith(b"inside\n")
    await session.close()
    await docked.engine.stop(attempt(), grace_seconds=60)
    assert (await docked.exited(attempt())).code == 7
    assert daemon.containers() == []


@pytest.mark.parametrize("how", ["grace", "client", "shim"])
async def test_no_container_outlives_its_task(
    docked: Harness, image: str, daemon: docker.DockerDaemon, how: str
) -> None:
    await docked.engine.start(launch("sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done", image=image))
    await docked.line("up")
    if how == "grace":
        await docked.engine.stop(attempt(), grace_seconds=0.1)
    elif how == "client":
        os.kill(processes.first_child(docked.shim()), signal.SIGKILL)
    else:
        os.kill(docked.shim(), signal.SIGKILL)
    end = await docked.exited(attempt())
    assert end.code == (-101 if how == "shim" else 137)
    assert daemon.containers() == []


@pytest.fixture
async def lost(tmp_path: Path, docked: Harness, image: str, daemon: docker.DockerDaemon) -> AsyncIterator[Path]:
    """The folder of a dead server, of whose task only the container remains."""
    await docked.engine.start(launch("sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done", image=image))
    await docked.line("up")
    shim, folder = docked.shim(), docked.engine._live[attempt()].folder.path
    await docked.abandon()
    processes.kill_group(shim, signal.SIGKILL)
    await until(lambda: not [process for process in processes.everything() if process.alive and process.group == shim])
    shutil.rmtree(folder)
    reaper.reap(shim)
    assert daemon.containers() != []
    yield tmp_path
    daemon.client("container", "prune", "--force")


async def test_the_next_server_ends_a_container_without_folder_and_client_and_starts_no_second_one(
    lost: Path, image: str, daemon: docker.DockerDaemon
) -> None:
    async with Harness(lost) as local:
        await local.engine.start(launch("echo", "a second time", image=image))
        end = await local.exited(attempt())
        assert (end.code, end.reason) == (-101, FOLDER_GONE)
        assert local.count(Started, attempt()) == 0 and daemon.containers() == []
        await local.engine.forget([attempt()])
    async with Harness(lost) as local:
        await local.engine._adopt_containers(local.engine._orphan_containers.find(()))
        assert local.engine.attempts() == frozenset()


async def test_a_container_of_another_server_on_this_machine_is_left_alone(
    lost: Path, daemon: docker.DockerDaemon, image: str
) -> None:
    async with Harness(lost / "other") as other:
        other.engine._orphan_containers.use()
        await other.engine._adopt_containers(other.engine._orphan_containers.find(()))
        assert other.engine.attempts() == frozenset() and daemon.containers() != []
    async with Harness(lost) as local:
        await local.exited(attempt())


async def test_no_container_begins_before_the_runtime_has_told_of_those_that_are_lost(
    lost: Path, image: str, monkeypatch: pytest.MonkeyPatch, daemon: docker.DockerDaemon
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nobody/there")
    async with Harness(lost) as local:
        with pytest.raises(Unavailable, match="docker does not say which containers there are"):
            await local.engine.start(launch("true", image=image))
        monkeypatch.setenv("DOCKER_HOST", daemon.host)
        await local.exited(attempt())


async def test_an_image_that_is_not_there_ends_the_task_and_says_so(docked: Harness) -> None:
    end = await docked.run("true", image="corral-no-such-image:1")
    assert end.code == 125 and "corral-no-such-image" in docked.log()
