"""Compose a task's command line from layers for user, runtime and container around the job's command.

```
shim → [setpriv: the user] → [runtime: code, barrier, secrets] → [docker run: the image] → command
```

Layers that a task does not need are left out. With an image the client must run as the server's own user, so the user
is set inside the container instead.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from corral.devices import device_files
from corral.engines.local.attempt_folder import AttemptFolder, LaunchRecord
from corral.engines.local.containers import Container, client_environment, container_name, exec_command, run_command
from corral.engines.local.environment import base_environment, split_unsafe_variables
from corral.engines.local.processes import MARKER
from corral.engines.local.storages import BoundStorage, LocalStorages, link_all, spec_of, volumes
from corral.kernel.errors import Conflict, NotFound, Unavailable
from corral.kernel.plug_ins import runtime_modules
from corral.model.launch import RuntimePlan, TaskLaunch
from corral.runtime.build import build_runtime
from corral.storage.code_archives import BlobStore

CODE_HANDLE = 3
STAGE_COMMAND = (sys.executable, "-m", "corral.storage", "stage")
_SYSTEM_PYTHONS = ("/usr/bin/python3", "/usr/local/bin/python3")


@dataclass
class LaunchTools:
    """The programs and stores with which this server runs tasks."""

    root: Path
    blobs: BlobStore | None = None
    find_container_runtime: Callable[[], str | None] = lambda: None
    process_limit: int = 0
    """The limit of processes and threads per task, 0 for none."""
    storages: LocalStorages = field(default_factory=LocalStorages, init=False)
    _runtime: str = field(default="", init=False)
    _container_runtime: str | None = field(default=None, init=False)

    def runtime(self) -> str:
        """Return the path of the runtime's zipapp, built when first needed.

        Raises OSError.
        """
        if not self._runtime:
            self._runtime = str(build_runtime(self.root / "runtime.pyz", runtime_modules()))
        return self._runtime

    async def bring_code(self, launch: TaskLaunch) -> None:
        """Fetch the archive of a task's code to this machine. If it is missing, `prepare` reports it.

        Raises Unavailable when the blob store does not answer.
        """
        digest = launch.runtime.code_digest if launch.runtime is not None else ""
        if digest and self.blobs is not None:
            with contextlib.suppress(NotFound):
                await self.blobs.fetch(digest)

    def python(self, uid: int) -> str:
        """Return a Python that the uid (-1: the server's own) can run: the server's, else the system's.

        Raises Unavailable when there is none.
        """
        for program in (sys.executable, *_SYSTEM_PYTHONS):
            if uid < 0 or _open_to_all(program):
                return program
        message = f"No Python can be run by other users: {sys.executable} is in a closed folder; install python3."
        raise Unavailable("no-python-for-users", message, retry_after=60)

    def container_runtime(self) -> str:
        """Return the program that runs images.

        Raises Unavailable when none answers.
        """
        if self._container_runtime is None:
            self._container_runtime = self.find_container_runtime()
        if self._container_runtime is None:
            raise Unavailable(
                "no-container-runtime", "Neither Docker nor Podman answers here; start one.", retry_after=30
            )
        return self._container_runtime


@dataclass(frozen=True)
class ShimCommand:
    """The arguments, environment and folder with which the shim starts, and the code archive to pass on."""

    argv: list[str]
    env: dict[str, str]
    directory: str
    code: str = ""


def needs_runtime(launch: TaskLaunch) -> bool:
    """Return whether the task's command needs the runtime around it."""
    return launch.runtime is not None or bool(launch.secrets) or bool(launch.image)


def base_folder(launch: TaskLaunch, folder: AttemptFolder) -> str:
    """Return the base folder for code and relative paths: the job's absolute working directory, else the attempt's.

    With an image an absolute directory is inside the image: the container sees only its own folder of this machine.
    """
    return launch.working_dir if os.path.isabs(launch.working_dir) and not launch.image else f"{folder.path}/work"


def session_folder(launch: TaskLaunch, folder: AttemptFolder) -> str:
    """Return the folder in which sessions of the task start. Sessions in a container start inside it."""
    base = base_folder(launch, folder)
    return base if launch.image else os.path.normpath(os.path.join(base, launch.working_dir))


def session_command(
    argv: Sequence[str], env: Mapping[str, str], record: LaunchRecord, inside: int, tools: LaunchTools, *, tty: bool
) -> tuple[list[str], dict[str, str]]:
    """Return the command line and environment that run a command as the task, beside it.

    `inside` is the task's process if it has its own mount namespace.
    """
    if record.container:
        return exec_command(record.container, record.container_runtime, argv, tty=tty), dict(env)
    if not inside:
        return _for_user(record.uid, argv, env, record.device_groups)
    words, env = _loading(record.uid, argv, env)
    return [*tools.storages.entering(inside, record.directory, record.uid, record.device_groups), *words], env


def prepare(
    launch: TaskLaunch,
    folder: AttemptFolder,
    record: LaunchRecord,
    env: Mapping[str, str],
    log: str,
    tools: LaunchTools,
) -> ShimCommand:
    """Write the attempt's private files and compose its command line. The folder must exist.

    Raises OSError, and NotFound when the code archive is not in the blob store.
    """
    base = base_folder(launch, folder)
    directory = os.path.normpath(os.path.join(base, launch.working_dir))
    env = {**env, "CORRAL_TASK_DIR": directory}
    argv = list(launch.command)
    bound = tools.storages.bind(launch.storages, folder.path, record.uid)
    code = entry = ""
    if launch.image:
        entry = folder.write_private("entry", b"", -1)  # the folder stays the server's: its programs read it
        if record.uid >= 0:
            os.chown(entry, record.uid, -1)
        logins = folder.write_private("config.json", launch.registries.encode(), -1) if launch.registries else ""
        own = (tools.container_runtime(), record.container, record.uid, base, directory, entry)
        container = Container(*own, tuple(volumes(bound)), tools.process_limit, logins, os.path.dirname(folder.path))
        argv = run_command(container, launch)
    if needs_runtime(launch):
        plan = launch.runtime or RuntimePlan()
        if plan.code_digest and tools.blobs is not None:
            code = str(tools.blobs.get(plan.code_digest))
        path = _write_plan(launch, plan, folder, record, _Around(argv, base, directory, log, code, entry, env, bound))
        argv = [tools.python(-1 if launch.image else record.uid), "-I", "-S", tools.runtime(), "run", path]
        directory = base
    if launch.image:
        env = {**base_environment(-1), **client_environment(), MARKER: launch.attempt}
        return ShimCommand(argv, env, directory, code)
    words = tools.storages.namespace() if bound else ()
    if bound and not words:
        link_all(bound, record.uid)
    if not words:
        argv, env = _for_user(record.uid, argv, env, record.device_groups)
        return ShimCommand(argv, env, directory, code)
    # The runtime enters the working folder, which may be in a storage, and then becomes the user. As root, no program
    # (not even `setpriv`) may be looked up among mounts that a job chose.
    argv, env = _loading(record.uid, argv, env)
    spec = folder.write_own("mounts", spec_of(bound, directory, record.uid, record.device_groups))
    argv = [*words, tools.python(-1), "-I", "-S", tools.runtime(), "mount", spec, *argv]
    return ShimCommand(argv, env, folder.path, code)


def _for_user(
    uid: int, argv: Sequence[str], env: Mapping[str, str], groups: Sequence[int]
) -> tuple[list[str], dict[str, str]]:
    """Return the command line that runs a command under a uid (-1: the server's own), and its first environment.

    Until a program has given up the server's rights, it gets no variable that makes it run something that the job
    chose.
    """
    words, env = _loading(uid, argv, env)
    return [*(as_user(uid, groups) if uid >= 0 else ()), *words], env


def _loading(uid: int, argv: Sequence[str], env: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return the command line that sets unsafe variables once the process is the uid's, and the other variables."""
    if uid < 0:
        return list(argv), dict(env)
    safe, own = split_unsafe_variables(env)
    words = [shutil.which("env") or "/usr/bin/env", *(f"{name}={value}" for name, value in own.items())] if own else []
    return [*words, *argv], safe


def as_user(uid: int, groups: Sequence[int] = ()) -> tuple[str, ...]:
    """Return the command prefix to run under a uid with some groups, without any other of the server's.

    A job's PATH does not affect it.
    """
    keep = f"--groups={','.join(map(str, groups))}" if groups else "--clear-groups"
    return (shutil.which("setpriv") or "setpriv", f"--reuid={uid}", f"--regid={uid}", keep, "--")


def closed_folder(folder: Path) -> Path | None:
    """Return the first folder on the path that other users cannot enter, None if all are open."""
    return next((place for place in (folder, *folder.parents)[::-1] if not os.stat(place).st_mode & 0o001), None)


def require_open(folder: Path, user: str) -> None:
    """Raise Conflict if the tasks of a user, who has a uid of their own, cannot enter a folder."""
    if closed := closed_folder(folder):
        message = f"Tasks of {user} cannot reach their folders: {closed} is closed to other users; chmod o+x it."
        raise Conflict("folder-closed", message)


def device_groups(launch: TaskLaunch) -> tuple[int, ...]:
    """Return the groups by which a task's processes open its devices."""
    return device_files.groups(launch.devices)


def container_of(launch: TaskLaunch) -> str:
    """Return the name of the attempt's container, "" without an image."""
    return container_name(launch.attempt) if launch.image else ""


class _Around(NamedTuple):
    """The command and paths that the runtime wraps."""

    argv: list[str]
    base: str
    directory: str
    log: str
    code: str
    entry: str
    env: dict[str, str]
    bound: Sequence[BoundStorage]


def _write_plan(
    launch: TaskLaunch, plan: RuntimePlan, folder: AttemptFolder, record: LaunchRecord, around: _Around
) -> str:
    uid = -1 if launch.image else record.uid
    private = {
        "token_file": ("token", launch.job_token),
        "job_secret_file": ("job-secret", launch.job_secret or launch.job_token),
        "secrets_file": ("secrets", _secrets(launch)),
    }
    files = {field_: folder.write_private(name, text.encode(), uid) for field_, (name, text) in private.items() if text}
    content = {
        "attempt": launch.attempt,
        "command": around.argv,
        "work": around.base,
        "directory": around.base if launch.image and not _inside(around.directory, around.base) else around.directory,
        "entry_file": around.entry,
        "env": around.env if around.entry else {},
        "owner": record.uid if launch.image else -1,
        "code_handle": CODE_HANDLE if around.code else -1,
        "code_target": plan.code_target,
        "inputs": plan.inputs,
        "outputs": plan.outputs,
        "storages": _moved(launch, around.bound),
        "stage_command": _stage_command(uid, record.uid),
        "barrier": plan.barrier,
        "barrier_timeout_seconds": plan.barrier_timeout_seconds,
        "resolve": plan.resolve,
        "notebook": plan.notebook,
        "keeps_files": plan.keeps_files,
        "plug_in": plan.plug_in,
        "plug_in_steps": plan.plug_in_steps,
        "error_block": plan.error_block,
        "kept_secrets": launch.kept_secrets,
        "checkpoint": _checkpoint(launch, plan, around),
        "report": _report(plan, folder),
        "profile": plan.profile,
        "preflight": msgspec.to_builtins(plan.preflight),
        "compile_cache": _own(plan.compile_cache, folder),
        "exit_patterns": plan.exit_patterns and launch.runtime is not None,
        "log": around.log,
        "api_url": launch.api_url,
        "api_certificate": launch.api_certificate,
        "result_file": folder.write_private("result", b"", uid),
        **files,
    }
    return folder.write_private("plan", json.dumps(content).encode(), uid)


def _report(plan: RuntimePlan, folder: AttemptFolder) -> dict[str, Any] | None:
    """Return where reports of the work are found; the module for programs is put into the attempt's own folder."""
    return _own(plan.report, folder)


def _own(part: msgspec.Struct | None, folder: AttemptFolder) -> dict[str, Any] | None:
    """Return a part of the plan with the attempt's own folder, where the runtime keeps its files for the command."""
    return {**msgspec.to_builtins(part), "folder": f"{folder.path}/work"} if part is not None else None


def _checkpoint(launch: TaskLaunch, plan: RuntimePlan, around: _Around) -> str:
    """Return the checkpoint folder as the runtime sees it. With an image only paths in the work folder are visible."""
    if not plan.checkpoint:
        return ""
    path = os.path.normpath(os.path.join(around.directory, plan.checkpoint))
    return "" if launch.image and not _inside(path, around.base) else path


def _moved(launch: TaskLaunch, bound: Sequence[BoundStorage]) -> list[tuple[str, str, bool]]:
    """Return the storages whose data are copied, and where to.

    With an image the runtime sees only the folders outside.
    """
    return [
        (mount.uri, place.source if launch.image else place.path, mount.read_only)
        for mount, place in zip(launch.storages, bound, strict=True)
        if mount.is_moved
    ]


def _inside(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/")


def _stage_command(runtime: int, user: int) -> tuple[str, ...]:
    """Return the command that moves data as a user, possibly from another uid; empty if the user cannot run it.

    With an image the runtime runs as the server, which may read and write more than the user.
    """
    if user >= 0 and not _open_to_all(sys.executable):
        return ()
    return STAGE_COMMAND if runtime == user else (*as_user(user), *STAGE_COMMAND)


@functools.cache
def _open_to_all(program: str) -> bool:
    """Return whether every user may run a program: the file and all its parent folders, with links resolved."""
    path = Path(os.path.realpath(program))
    try:
        return all(os.stat(place).st_mode & 0o001 for place in (path, *path.parents, *Path(program).parents))
    except OSError:
        return False


def _secrets(launch: TaskLaunch) -> str:
    if not launch.given_secrets:
        return ""
    return json.dumps([{"value": s.value, "env": s.env, "file": s.file} for s in launch.given_secrets])
