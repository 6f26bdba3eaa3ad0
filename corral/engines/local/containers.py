"""Why: a job may name an image; then the task is one `docker run` (or `podman run`) under the same shim.

Values of variables are never on the command line: `--env NAME` alone takes them from the client's environment.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from corral.engines.local.environment import vendor
from corral.kernel.ids import AttemptId
from corral.model.inventory import Device
from corral.model.launch import TaskLaunch

RUNTIMES = ("docker", "podman")
_NOT_PASSED = {
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LD_LIBRARY_PATH",
    "TMPDIR",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "VIRTUAL_ENV",
}
_PROBE_SECONDS = 10


class Container(NamedTuple):
    """How one attempt runs in a container."""

    runtime: str
    name: str
    uid: int
    """The uid inside, -1 for the image's own."""
    work: str
    """The attempt's folder, mounted at the same path."""
    directory: str


def container_runtime(candidates: Iterable[str] = RUNTIMES) -> str | None:
    """The path of a container runtime that really answers, None when there is none."""
    for name in candidates:
        program = shutil.which(name)
        if program is None:
            continue
        try:
            asked = subprocess.run(
                [program, "version", "--format", "{{.Server.Version}}"],
                capture_output=True,
                timeout=_PROBE_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if asked.returncode == 0 and asked.stdout.strip():
            return program
    return None


def container_name(attempt: AttemptId) -> str:
    """The container's name, unique for ever."""
    return f"corral-{attempt}"


def run_command(container: Container, launch: TaskLaunch, env: Iterable[str]) -> list[str]:
    """The command line that runs the task's image; the task's own command is appended to it.

    `env` are the names of the variables to pass.
    """
    argv = [container.runtime, "run", "--rm", "--init", f"--name={container.name}", "--network=host"]
    argv += [f"--volume={container.work}:{container.work}", f"--workdir={container.directory}"]
    if container.uid >= 0:
        argv.append(f"--user={container.uid}:{container.uid}")
    if launch.memory_bytes:
        argv += [f"--memory={launch.memory_bytes}", f"--memory-swap={launch.memory_bytes}"]
    if launch.cpu_millis:
        argv.append(f"--cpus={launch.cpu_millis / 1000:g}")
    if launch.shm_bytes:
        argv.append(f"--shm-size={launch.shm_bytes}")
    argv += device_options(launch.devices)
    argv += [f"--env={name}" for name in sorted(set(env) - _NOT_PASSED)]
    argv.append(launch.image)
    return argv


def device_options(devices: Sequence[Device]) -> list[str]:
    """What makes real devices visible inside; described ones exist on paper only."""
    real = [device for device in devices if not device.described]
    options: list[str] = []
    nvidia = [device.id for device in real if vendor(device) == "nvidia"]
    if nvidia:
        options.append(f'--gpus="device={",".join(nvidia)}"')
    if any(vendor(device) == "amd" for device in real):
        options += ["--device=/dev/kfd", "--device=/dev/dri", "--group-add=video"]
    for device in real:
        if vendor(device) == "ascend":
            options.append(f"--device=/dev/davinci{device.index}")
    if any(vendor(device) == "ascend" for device in real):
        options += ["--device=/dev/davinci_manager", "--device=/dev/devmm_svm", "--device=/dev/hisi_hdc"]
    return options


def remove_command(runtime: str, name: str) -> list[str]:
    """Ends a container and everything in it; succeeds when it is gone already."""
    return [runtime, "rm", "--force", "--volumes", name]


def exec_command(container: str, runtime: str, argv: Sequence[str], *, tty: bool) -> list[str]:
    """Runs a command inside a container that runs."""
    return [runtime, "exec", "--interactive", *(["--tty"] if tty else []), container, *argv]
