"""Run a task in its image by `docker run` or `podman run`, under the same shim.

The client runs as the server's own user, so nothing of the job may reach its environment (`LD_PRELOAD`,
`DOCKER_CONFIG`). The job's variables and secrets are in a private file that the container's `sh` reads before it
becomes the command. They appear on no command line, and not in `docker inspect`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from corral.devices import device_files
from corral.devices.visibility import vendor
from corral.kernel.ids import AttemptId
from corral.model.inventory import Device
from corral.model.launch import TaskLaunch

RUNTIMES = ("docker", "podman")
LABEL = "corral.dev/attempts"
"""The container label with the folder of its engine's attempts."""
_CLIENT = ("XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "DBUS_SESSION_BUS_ADDRESS")
_PROBE_SECONDS = 10
_ANSWER_SECONDS = 20.0
"""Seconds for one call to the runtime. A hanging call delays the end of its task no longer."""
_REMOVE_SECONDS, _REMOVE_PAUSE = 60.0, 0.2


class Container(NamedTuple):
    """The container of one attempt."""

    runtime: str
    name: str
    uid: int
    """The uid inside, -1 for the image's own."""
    work: str
    """The attempt's folder, mounted at the same path."""
    directory: str
    entry: str
    """The file that sets the variables, mounted separately."""
    volumes: tuple[str, ...] = ()
    """The options that mount its storages."""
    processes: int = 0
    """The limit on processes, 0 for none."""
    registries: str = ""
    """The client's `config.json` with the registry logins of the job's own images, in its own folder."""
    attempts: str = ""
    """The folder of the engine's attempts."""


def container_runtime(candidates: Iterable[str] = RUNTIMES) -> str | None:
    """Return the path of a container runtime that answers, None if there is none."""
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
    """Return the container's name, never used again."""
    return f"corral-{attempt}"


def client_environment(server: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the server's own variables by which the client finds its container runtime."""
    return {
        name: value for name, value in server.items() if name.startswith(("DOCKER_", "CONTAINER_")) or name in _CLIENT
    }


def run_command(container: Container, launch: TaskLaunch) -> list[str]:
    """Return the command line that runs the task in its image."""
    argv = [*_client(container), "--init", f"--name={container.name}", "--network=host"]
    argv.append(f"--label={LABEL}={container.attempts}")
    argv += [f"--volume={container.work}:{container.work}", f"--workdir={container.directory}"]
    argv += [f"--volume={container.entry}:{container.entry}:ro", *container.volumes]
    if container.uid >= 0:
        # A root process could leave setuid programs in the task's folder that make anybody root outside.
        argv += [f"--user={container.uid}:{container.uid}", "--security-opt=no-new-privileges"]
    if launch.memory_bytes:
        argv += [f"--memory={launch.memory_bytes}", f"--memory-swap={launch.memory_bytes}"]
    if launch.cpu_millis:
        argv.append(f"--cpus={launch.cpu_millis / 1000:g}")
    if container.processes:
        argv.append(f"--pids-limit={container.processes}")
    if launch.shm_bytes:
        argv.append(f"--shm-size={launch.shm_bytes}")
    argv += device_options(launch.devices)
    argv += ["--entrypoint=sh", launch.image, container.entry, *launch.command]
    return argv


def _client(container: Container) -> list[str]:
    """Return the first words of a run. Docker takes the folder of its settings, Podman the file with logins."""
    if not container.registries:
        return [container.runtime, "run"]
    if os.path.basename(container.runtime) == "podman":
        return [container.runtime, "run", f"--authfile={container.registries}"]
    return [container.runtime, f"--config={os.path.dirname(container.registries)}", "run"]


def device_options(devices: Sequence[Device]) -> list[str]:
    """Return the options that make real devices visible inside. Described devices get none."""
    real = [device for device in devices if not device.described]
    options: list[str] = []
    nvidia = [device.id for device in real if vendor(device) == "nvidia"]
    if nvidia:
        options.append(f'--gpus="device={",".join(nvidia)}"')
    if any(vendor(device) == "amd" for device in real):
        options += ["--device=/dev/kfd", "--device=/dev/dri"]
    for device in real:
        if vendor(device) == "ascend":
            options.append(f"--device=/dev/davinci{device.index}")
    if any(vendor(device) == "ascend" for device in real):
        options += [f"--device=/{name}" for name in device_files.ASCEND_SHARED]
    return options + [f"--group-add={group}" for group in device_files.groups(real)]


async def answer_of(runtime: str, *words: str, seconds: float = _ANSWER_SECONDS) -> bytes | None:
    """Return a runtime command's output, or None if it fails or takes longer than `seconds`."""
    pipe, quiet = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(runtime, *words, stdin=quiet, stdout=pipe, stderr=quiet)
    try:
        async with asyncio.timeout(seconds):
            said, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        return None
    return said if process.returncode == 0 else None


async def ran_out_of_memory(runtime: str, name: str) -> bool:
    """Return whether a process of an ended container was killed for lack of memory."""
    said = await answer_of(runtime, "container", "inspect", "--format", "{{.State.OOMKilled}}", name)
    return said is not None and said.strip() == b"true"


async def remove(runtime: str, name: str) -> None:
    """Remove a container with all its processes and wait until it is gone.

    A runtime refuses a second removal while one is under way. So the container is inspected until it no longer exists.
    An unavailable runtime is asked again for a minute.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + _REMOVE_SECONDS
    while loop.time() < until:
        if await _answers(runtime, "rm", "--force", "--volumes", name) and not await _answers(
            runtime, "container", "inspect", name
        ):
            return
        await asyncio.sleep(_REMOVE_PAUSE)


async def _answers(*argv: str) -> bool:
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*argv, stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            return await process.wait() == 0
    except TimeoutError:
        process.kill()
        return False


def exec_command(container: str, runtime: str, argv: Sequence[str], *, tty: bool) -> list[str]:
    """Return the command line that runs a command inside a running container."""
    return [runtime, "exec", "--interactive", *(["--tty"] if tty else []), container, *argv]
