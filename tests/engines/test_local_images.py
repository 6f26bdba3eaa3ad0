"""A task with an image is one container command; a real one runs where a container runtime answers."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from corral.engines.local.containers import (
    Container,
    container_name,
    container_runtime,
    device_options,
    exec_command,
    remove_command,
    run_command,
)
from corral.kernel.errors import Unavailable
from corral.model.inventory import Device
from corral.model.launch import SecretDelivery
from tests.engines.local_harness import Harness, attempt, launch, until

HERE = Container("/usr/bin/docker", "corral-x", 1000, "/a/work", "/a/work/src")


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
    argv = run_command(HERE, task, ["PASSWORD", "CORRAL_ROLE", "PATH", "HOME"])
    assert argv == [
        "/usr/bin/docker", "run", "--rm", "--init", "--name=corral-x", "--network=host",
        "--volume=/a/work:/a/work", "--workdir=/a/work/src", "--user=1000:1000",
        f"--memory={1 << 30}", f"--memory-swap={1 << 30}", "--cpus=1.5", f"--shm-size={1 << 20}",
        "--env=CORRAL_ROLE", "--env=PASSWORD", "team/train:1",
    ]  # fmt: skip
    plain = run_command(HERE._replace(uid=-1), launch("true", image="i"), [])
    assert not any(word.startswith(("--user", "--memory", "--cpus", "--shm")) for word in plain)


def test_devices_are_handed_over_by_vendor_and_described_ones_are_not() -> None:
    assert device_options([Device(0, "GPU-a"), Device(3, "GPU-b")]) == ['--gpus="device=GPU-a,GPU-b"']
    assert "--device=/dev/kfd" in device_options([Device(0, "x", model="AMD gfx90a")])
    assert "--device=/dev/davinci2" in device_options([Device(2, "x", kind="npu")])
    assert device_options([Device(0, "GPU-a", described=True)]) == []


def test_sessions_and_removal_name_the_container() -> None:
    assert exec_command("c", "docker", ["ls"], tty=True) == ["docker", "exec", "--interactive", "--tty", "c", "ls"]
    assert remove_command("docker", "c") == ["docker", "rm", "--force", "--volumes", "c"]
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
    local.engine._means.find_container_runtime = lambda: None
    with pytest.raises(Unavailable, match="Neither Docker nor Podman"):
        await local.engine.start(launch("true", image="busybox"))
    assert local.engine.attempts() == frozenset()


async def test_containers_run_stop_and_leave_nothing(local: Harness) -> None:
    runtime, busybox = container_runtime(), shutil.which("busybox")
    if runtime is None or busybox is None:
        pytest.skip("no container daemon (docker.io) or no busybox here; install and start them to run this")
    image = "corral-test-busybox"
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        tar.add(busybox, "bin/busybox")
        for name in ("sh", "sleep", "echo", "pwd"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    subprocess.run([runtime, "import", "-", image], input=raw.getvalue(), check=True, capture_output=True)
    try:
        end = await local.run("sh", "-c", "echo $COLOUR; pwd; exit 4", image=image, env={"COLOUR": "teal"})
        assert end.code == 4 and local.log().startswith("teal\n")
        await local.engine.start(launch("sh", "-c", "echo up; sleep 1000", image=image, task=1))
        await local.line("up", attempt(1))
        await local.engine.stop(attempt(1), grace_seconds=0.2)
        await local.exited(attempt(1))
        listed = subprocess.run([runtime, "ps", "-aq", "--filter", "name=corral-"], capture_output=True, check=True)
        await until(lambda: listed.stdout == b"")
    finally:
        subprocess.run([runtime, "rmi", image], check=False, capture_output=True)
