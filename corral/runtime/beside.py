"""The runtime in a sidecar container, for images that have only a shell.

Both containers share a folder. The command's container prints the file `said` until the file `entry` exists, and then
executes it, so signals, exit code and streams are the command's own. Kubernetes stops the sidecar after the command's
container has ended; then outputs are moved, within the rest of the pod's grace period. A restarted sidecar resumes
where it stopped.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from corral.runtime.checkpoints import Checkpoints, watch
from corral.runtime.peers import Api
from corral.runtime.plan import Plan, take
from corral.runtime.run import (
    RUNTIME_FAILED,
    Failed,
    await_last_reports,
    cache_of,
    finish_cache,
    notebook_variables,
    prepare,
    report_threads,
    say_unseen,
    stage_out,
    writable_name,
)

if TYPE_CHECKING:
    from corral.runtime.compile_cache import CompileCache

SAID, ENTRY, READY, EXIT = "said", "entry", "ready", "exit"
_PASSED: Final = ("TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "CONT", "ALRM")
_DEAF: Final = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM)
"""Signals that are sent to every process of the pod, but are meant for the command."""


def main(given: str, private: str) -> int:
    """Carry out the plan in the folder `given`, with copies in `private`; the exit code of this container."""
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    for number in _DEAF:
        signal.signal(number, signal.SIG_IGN)
    plan = _read(given, private)
    api = Api(plan.api_url, take(plan.token_file), plan.api_certificate) if plan.api_url else None
    cache = cache_of(plan, api)
    entry, ready = os.path.join(plan.shared, ENTRY), os.path.join(plan.shared, READY)
    env: Mapping[str, str] = {}
    if os.path.exists(entry):
        _profiler(plan)
        env = notebook_variables(plan)
    else:
        env = _begin(plan, api, entry, ready, cache)
    if not os.path.exists(ready):
        told.wait()
        return 0
    if plan.checkpoint and api is not None:
        threading.Thread(target=watch, args=(Checkpoints(api, plan.attempt, plan.checkpoint), told)).start()
    if cache is not None:
        cache.begin()
    reporters = report_threads(plan, api, told, cache, env) if api is not None else []
    told.wait()
    await_last_reports(plan, reporters)
    finish_cache(plan, cache, succeeded=_exit_code(plan) == "0")
    return _end(plan)


def _read(given: str, private: str) -> Plan:
    """Read copies of the plan's files: reading removes them, and this container may be restarted."""
    os.makedirs(private, exist_ok=True)
    for name in ("plan", "token", "job-secret"):
        shutil.copyfile(os.path.join(given, name), os.path.join(private, name))
    plan = Plan.read(os.path.join(private, "plan"))
    code = os.path.join(given, "code")
    return replace(plan, code_handle=os.open(code, os.O_RDONLY | os.O_CLOEXEC)) if os.path.exists(code) else plan


def _begin(plan: Plan, api: Api | None, entry: str, ready: str, cache: CompileCache | None = None) -> Mapping[str, str]:
    """Do all steps before the command, write the script that its container executes, and return its variables."""
    env: Mapping[str, str] = {}
    os.umask(0)  # the command may run under any uid
    with suppress(OSError):  # a folder outside the shared one is in the image; the script reports if it is missing
        os.makedirs(plan.directory, exist_ok=True)
    try:
        with _saying(os.path.join(plan.shared, SAID)):
            argv, prepared = prepare(plan, api, cache)
            env = _offered(_profiler(plan), prepared)
            if plan.report is not None:
                say_unseen(plan)
            script = _script(plan, argv, env)
            _write(ready, "")
    except Failed as failure:
        script = _refusal(failure)
    _write(entry, script)
    return env


def _profiler(plan: Plan) -> str:
    """Answer PyTorch's profiler from now on, if the job asks for it: the folder for that, "" where it is not done."""
    if not (plan.profile and plan.profiler_folder):
        return ""
    from corral.runtime import torch_daemon  # most tasks are not traced

    try:
        torch_daemon.answer_beside(plan.profiler_folder)
    except OSError as error:
        print(f"corral: PyTorch's traces are not offered: {error.strerror}.", file=sys.stderr, flush=True)
        return ""
    return plan.profiler_folder


def _offered(folder: str, env: dict[str, str]) -> dict[str, str]:
    """The command's environment with what PyTorch needs to ask in a folder; as it is where there is none."""
    if not folder:
        return env
    from corral.runtime import torch_daemon

    return {**env, **torch_daemon.offered(folder, env)}


def _end(plan: Plan) -> int:
    """Do all steps after the command; a failure is written to the container's termination message."""
    try:
        stage_out(plan)
    except Failed as failure:
        print(f"corral: {failure}", file=sys.stderr, flush=True)
        if plan.result_file:
            _write_through(plan.result_file, json.dumps({"message": str(failure)}))
        return failure.code
    return 0


def _script(plan: Plan, argv: list[str], env: Mapping[str, str]) -> str:
    """The script for the command's shell; it exports only variables that differ from the container's.

    Where the job sets no PYTHONPATH, the image's own stays before what is added.
    """
    lines = []
    for name, value in env.items():
        if plan.env.get(name) != value:
            writable_name(name)
            before = '"${PYTHONPATH:+$PYTHONPATH:}"' if name == "PYTHONPATH" and name not in plan.env else ""
            lines.append(f"export {name}={before}{shlex.quote(value)}")
    missing = f"corral: the working directory {plan.directory} cannot be entered"
    lines.append(f"cd -- {shlex.quote(plan.directory)} || {{ echo {shlex.quote(missing)} >&2; exit 126; }}")
    run = f"exec {shlex.join(argv)}" if plan.compile_cache is None else _telling(plan, argv)
    return "\n".join([*lines, run, ""])


def _telling(plan: Plan, argv: list[str]) -> str:
    """The end of a script that tells this container the command's exit code, and passes signals on to the command.

    `wait` ends early for each signal, and is called again until the command has ended. Some shells (dash) start it with
    SIGINT and SIGQUIT ignored, whatever the script says.
    """
    told = shlex.quote(os.path.join(plan.shared, EXIT))
    lines = [f"(trap - INT QUIT; exec {shlex.join(argv)}) <&0 &", "task=$!"]
    lines += [f"trap 'kill -{name} $task 2>/dev/null' {name}" for name in _PASSED]
    lines += [
        "while :; do wait $task; code=$?; kill -0 $task 2>/dev/null || break; done",
        f"printf %s $code >{told}",
        "exit $code",
    ]
    return "\n".join(lines)


def _exit_code(plan: Plan) -> str:
    """The exit code that the script told, "" if it told none."""
    try:
        with open(os.open(os.path.join(plan.shared, EXIT), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            return file.read(10).decode("ascii", "replace")
    except OSError:
        return ""


def _refusal(failure: Failed) -> str:
    """A script that ends the command's container as if the runtime in it had failed."""
    told: dict[str, Any] = {"message": str(failure)}
    lines = [
        f"echo {shlex.quote(f'corral: {failure}')} >&2",
        f"printf %s {shlex.quote(json.dumps(told))} >/dev/termination-log",
        f"exit {failure.code or RUNTIME_FAILED}",
    ]
    return "\n".join([*lines, ""])


@contextmanager
def _saying(path: str) -> Iterator[None]:
    """Redirect the output of this process and its children to a file, which is shown in the command's log."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    kept = [os.dup(1), os.dup(2)]
    try:
        sys.stderr.flush()
        for stream in (1, 2):
            os.dup2(handle, stream)
        yield
    finally:
        sys.stderr.flush()
        for stream, before in zip((1, 2), kept, strict=True):
            os.dup2(before, stream)
            os.close(before)
        os.close(handle)


def _write(path: str, content: str) -> None:
    _write_through(f"{path}.new", content)
    os.replace(f"{path}.new", path)


def _write_through(path: str, content: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(content)
