"""Run a task's command with all steps around it, in the same order on every engine.

The order is code, secrets, data in, the other tasks' addresses, the command, its log's patterns, data out, the report.
A signal before the command starts ends the task. Later signals reach the command by its process group, and the runtime
outlives it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO

from corral.runtime import plug_in
from corral.runtime.checkpoints import VARIABLE as CHECKPOINT_VARIABLE
from corral.runtime.checkpoints import Checkpoints, watch
from corral.runtime.error_block import RuntimeFault, container_code, error_block
from corral.runtime.fetching import NotKept, fetch
from corral.runtime.notebook_activity import WATCHED, activity_of
from corral.runtime.patterns import Match, recognise, tails_of
from corral.runtime.peers import (
    Address,
    Api,
    Refused,
    TimedOut,
    Unanswered,
    Unresolved,
    own_program,
    resolve,
    resolve_command,
    wait_for,
)
from corral.runtime.plan import Plan, take
from corral.runtime.unpack import UnsafeArchive, unpack

if TYPE_CHECKING:
    import threading

    from corral.runtime.compile_cache import CompileCache

BARRIER_UNANSWERED = 250
GANG_TIMEOUT = 251
BARRIER_REFUSED = 252
PORT_TAKEN = 253
RUNTIME_FAILED = 255
"""The codes of these failures.

They are named FrameworkBarrierTransientFailed, JobGangAllocationTimeout, FrameworkBarrierPermanentFailed,
ContainerPortConflict and PAIRuntimeUnknownFailed.
"""

_STAGE_SILENT = 4
"""The exit code of `corral.storage stage` when a storage does not answer."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOT_EXECUTABLE, _NOT_FOUND = 126, 127
_LAST_LINES = 10
LAST_REPORT_SECONDS = 5.0
"""The longest that a task's end waits for the last report of its program's work."""
LAST_COPY_SECONDS = 30.0
"""The same where event files of a remote folder are read."""
_MASK = "******"
_WATCHED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


class Failed(Exception):
    """The command could not be started, or its results not be saved; `code` is the task's exit code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Interrupted(BaseException):
    """The task was stopped before its command ran."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def main(plan_file: str) -> int:
    """Carry out the plan in a file; the exit code of the task."""
    result: dict[str, Any] = {}
    plan = Plan.read(plan_file)
    api = Api(plan.api_url, take(plan.token_file), plan.api_certificate) if plan.api_url else None
    cache = cache_of(plan, api)
    try:
        with _stoppable():
            argv, env = prepare(plan, api, cache)
        with _profiling(plan, env) as env, _watching(plan, api, cache, env):
            code = _run(argv, env, plan.directory or plan.work, pass_signals=plan.pass_signals)
        result["exit_code"] = code
        match = recognise(code, tails_of(plan.log)) if plan.exit_patterns else None
        if match is not None:
            code = _tell_match(result, match)
        finish_cache(plan, cache, succeeded=code == 0)
        stage_out(plan)
    except Failed as failure:
        print(f"corral: {failure}", file=sys.stderr, flush=True)
        result["message"] = str(failure)
        result["platform"] = str(failure)
        code = result.get("exit_code") or failure.code
    except Interrupted as stop:
        code = 128 + stop.number
        result["message"] = "stopped before the command ran"
    platform = result.pop("platform", "")
    if plan.error_block and code:
        _tell_fault(plan, result, code, platform)
    _report(plan, api, result)
    return code


def prepare(plan: Plan, api: Api | None, cache: CompileCache | None = None) -> tuple[list[str], dict[str, str]]:
    """Do all steps before the command; its arguments and environment. Raises Failed."""
    _unpack(plan, api)
    secrets = _deliver_secrets(plan)
    caches = cache.restore(_job_variables(plan)) if cache is not None else {}
    if plan.owner >= 0:
        _give_away(plan.work, plan.owner)
    for uri, path in plan.inputs:
        _stage(plan, uri, os.path.join(plan.work, path), "input")
    for uri, path, _ in plan.storages:
        _stage(plan, uri, path, "storage", "--storage")
    env = _job_variables(plan)
    try:
        peers = _peers(plan, api)
        key = take(plan.job_secret_file)
        argv = resolve_command(plan.command, peers, plan.program or own_program())
        env = {name: resolve(value, peers, key) for name, value in env.items()}
    except Unresolved as error:
        raise Failed(BARRIER_REFUSED, f"the command cannot be completed: {error}") from error
    if plan.preflight is not None:
        _check(plan, api, key)
    if plan.plug_in:
        argv, more = _prepare_plug_in(plan, argv, peers, key)
        env |= more
    env |= caches | secrets
    if plan.checkpoint:
        env[CHECKPOINT_VARIABLE] = plan.checkpoint
    if plan.report is not None:
        env |= _offer_report(plan, env)
    if plan.entry_file:
        _write_entry(plan.entry_file, env)
        return argv, dict(os.environ) | {name: env[name] for name in WATCHED if plan.notebook and name in env}
    return argv, env


def notebook_variables(plan: Plan) -> dict[str, str]:
    """The variables by which the notebook is asked, for a container beside it that was started again."""
    if not plan.notebook:
        return {}
    key = take(plan.job_secret_file)
    return {name: resolve(plan.env[name], {}, key) for name in WATCHED if name in plan.env}


def _job_variables(plan: Plan) -> dict[str, str]:
    return dict(plan.env if plan.entry_file or plan.shared else os.environ)


def cache_of(plan: Plan, api: Api | None) -> CompileCache | None:
    """The cache of what the task compiles, if the job asks for one."""
    if plan.compile_cache is None or api is None:
        return None
    from corral.runtime.compile_cache import CompileCache  # most tasks have none

    return CompileCache(plan, api)


def finish_cache(plan: Plan, cache: CompileCache | None, *, succeeded: bool) -> None:
    """Publish what the task compiled, if it succeeded, as the user who wrote it."""
    if cache is not None:
        with _as_owner(plan.owner):
            cache.finish(succeeded=succeeded)


def _check(plan: Plan, api: Api | None, key: str) -> None:
    from corral.runtime import preflight  # most tasks check nothing

    try:
        preflight.run(plan, api, key)
    except preflight.PreflightFailed as error:
        raise Failed(GANG_TIMEOUT, str(error)) from error


def _offer_report(plan: Plan, env: dict[str, str]) -> dict[str, str]:
    from corral.runtime import reports  # most tasks report nothing

    try:
        with _as_owner(plan.owner):
            return reports.offer(plan, env)
    except OSError as error:
        raise Failed(RUNTIME_FAILED, f"the module corral could not be written: {error.strerror}") from error


def _prepare_plug_in(
    plan: Plan, argv: list[str], peers: dict[str, Address], key: str
) -> tuple[list[str], dict[str, str]]:
    """Let the plan's plug-in prepare the task; the command with its words filled in, and additional variables."""
    directory = plan.directory or plan.work
    task = plug_in.PlugInTask(plan.plug_in_steps, peers, key, plan.kept_secrets, plan.work, directory, plan.shared)
    try:
        with _as_owner(plan.owner):
            prepared = plug_in.prepare(plan.plug_in, task)
    except plug_in.PlugInFailed as error:
        raise Failed(error.code, str(error)) from error
    except OSError as error:
        raise Failed(RUNTIME_FAILED, f"the task's scripts could not be written: {error.strerror}") from error
    for note in prepared.notes:
        print(f"corral: {note}", file=sys.stderr, flush=True)
    words = [prepared.argv if word == plug_in.WORD else [word] for word in argv]
    return [word for part in words for word in part], prepared.env


def _unpack(plan: Plan, api: Api | None) -> None:
    if plan.code_handle < 0 and not plan.code_digest:
        return
    try:
        with _archive(plan, api) as archive:
            unpack(archive, os.path.join(plan.work, plan.code_target), keep=plan.keeps_files)
    except UnsafeArchive as error:
        raise Failed(RUNTIME_FAILED, f"the code archive was refused: {error}") from error
    except OSError as error:
        raise Failed(RUNTIME_FAILED, f"the code could not be unpacked: {error}") from error


def _archive(plan: Plan, api: Api | None) -> BinaryIO:
    """Open the code archive, passed by the engine or fetched from the server if it is too large. Raises Failed."""
    if plan.code_handle >= 0:
        return os.fdopen(plan.code_handle, "rb")
    if api is None:
        raise Failed(RUNTIME_FAILED, "this task does not know the address of the server, which has its code")
    os.makedirs(plan.work, exist_ok=True)
    path = os.path.join(plan.work, ".corral-code")
    try:
        with open(path, "w+b") as file:
            os.unlink(path)
            if fetch(api, "/api/v3/runtime/code", file) != plan.code_digest:
                raise Failed(RUNTIME_FAILED, "the code that the server gave is not what the job was submitted with")
            file.seek(0)
            return os.fdopen(os.dup(file.fileno()), "rb")
    except (Refused, TimedOut, NotKept) as error:
        raise Failed(RUNTIME_FAILED, f"the code could not be fetched: {error}") from error


def _peers(plan: Plan, api: Api | None) -> dict[str, Address]:
    if not plan.barrier and not plan.resolve:
        return {}
    if api is None:
        raise Failed(RUNTIME_FAILED, "this task does not know the address of the server")
    try:
        return wait_for(
            api, plan.attempt, everyone=plan.barrier, wanted=plan.resolve, timeout=plan.barrier_timeout_seconds
        )
    except Unanswered as error:
        raise Failed(BARRIER_UNANSWERED, str(error)) from error
    except TimedOut as error:
        raise Failed(GANG_TIMEOUT, str(error)) from error
    except Refused as error:
        raise Failed(BARRIER_REFUSED, str(error)) from error


def _deliver_secrets(plan: Plan) -> dict[str, str]:
    """Write the secrets' files and return their variables; the file that delivered them is removed."""
    env: dict[str, str] = {}
    content = take(plan.secrets_file)
    for secret in json.loads(content) if content else []:
        if secret["env"]:
            env[secret["env"]] = secret["value"]
        if secret["file"]:
            path = os.path.join(plan.work, secret["file"])
            try:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8", opener=_private) as file:
                    file.write(secret["value"])
            except OSError as error:
                raise Failed(RUNTIME_FAILED, f"a secret could not be written to {path}: {error.strerror}") from error
    return env


def _write_entry(path: str, env: dict[str, str]) -> None:
    """Write the script that a container's shell runs: it exports the job's variables and executes the command."""
    with open(path, "w", encoding="utf-8") as file:
        for name, value in env.items():
            writable_name(name)
            file.write(f"export {name}={shlex.quote(value)}\n")
        file.write('exec "$@"\n')


def writable_name(name: str) -> None:
    """Raise Failed for a name that a shell does not accept for a variable."""
    if not _NAME.fullmatch(name):
        raise Failed(RUNTIME_FAILED, f"{name!r} cannot be the name of a variable in a container")


def _give_away(folder: str, owner: int) -> None:
    """Change the owner of a tree, contents before folders, so that the new owner cannot swap in a link meanwhile."""
    for here, _, names in os.walk(folder, topdown=False):
        for path in (*(os.path.join(here, name) for name in names), here):
            os.chown(path, owner, owner, follow_symlinks=False)


@contextmanager
def _as_owner(owner: int) -> Iterator[None]:
    """Write as the owner (-1: this process's user), so that a planted link cannot reach other users' files."""
    if owner < 0 or os.geteuid() != 0:
        yield
        return
    group, groups = os.getegid(), os.getgroups()
    os.setgroups([])
    os.setegid(owner)
    os.seteuid(owner)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)


@contextmanager
def _watching(plan: Plan, api: Api | None, cache: CompileCache | None, env: Mapping[str, str]) -> Iterator[None]:
    """Report checkpoints and the program's progress to the server in the block.

    Its end does not wait for the last checkpoint, and for the last progress at most `LAST_REPORT_SECONDS`.
    """
    if cache is not None:
        cache.begin()
    if api is None or not (plan.checkpoint or plan.report is not None or plan.notebook):
        yield
        return
    import threading  # most tasks are not watched

    stop = threading.Event()
    if plan.checkpoint:
        checkpoints = Checkpoints(api, plan.attempt, plan.checkpoint)
        threading.Thread(target=watch, args=(checkpoints, stop), daemon=True).start()
    reporters = report_threads(plan, api, stop, cache, env)
    try:
        yield
    finally:
        stop.set()
        await_last_reports(plan, reporters)
        if plan.report is not None:
            withdraw_report(plan)


@contextmanager
def _profiling(plan: Plan, env: dict[str, str]) -> Iterator[dict[str, str]]:
    """Offer PyTorch's traces in the block, if the job asks for it; the command's environment."""
    if not plan.profile:
        yield env
        return
    from corral.runtime import torch_daemon  # most tasks are not traced

    with torch_daemon.armed(env, apart=bool(plan.entry_file)) as offered:
        yield offered


def report_threads(
    plan: Plan, api: Api, stop: threading.Event, cache: CompileCache | None = None, env: Mapping[str, str] | None = None
) -> list[threading.Thread]:
    """Start the threads that report the program's progress and scalars until `stop`, if the job asks for it.

    `env` are the variables of the command.
    """
    if plan.report is None and not plan.notebook:
        return []
    import threading

    from corral.runtime import event_reports, reports

    sources = reports.sources_of(plan) if plan.report is not None else []
    if plan.notebook:
        sources += activity_of(plan.notebook, env or {})
    watched = reports.Reports(api, plan.attempt, sources, int((plan.report or {}).get("steps", 0)))
    if cache is not None:
        watched.first_step = cache.stepped
    threads = [threading.Thread(target=reports.watch, args=(watched, stop), daemon=True)]
    with _as_owner(plan.owner):
        folders = event_reports.sources_of(plan, env)
    # a sidecar has said it before the command began, as what it prints later is not in the task's log
    if not plan.shared:
        say_unseen(plan)
    if folders:
        events = event_reports.EventReports(api, plan.attempt, folders)
        threads.append(threading.Thread(target=event_reports.watch, args=(events, stop), daemon=True))
    for thread in threads:
        thread.start()
    return threads


def say_unseen(plan: Plan) -> None:
    """Say which folders of event files that the job names cannot be seen."""
    from corral.runtime.event_reports import unseen

    for each in unseen(plan):
        print(f"corral: {each}", file=sys.stderr, flush=True)


def await_last_reports(plan: Plan, threads: Iterable[threading.Thread]) -> None:
    """Wait until threads that were told to stop have ended, for `LAST_REPORT_SECONDS` or `LAST_COPY_SECONDS` in all."""
    remote = any("://" in name for name in (plan.report or {}).get("tensorboard", ()))
    until = time.monotonic() + (LAST_COPY_SECONDS if remote else LAST_REPORT_SECONDS)
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))


def withdraw_report(plan: Plan) -> None:
    """Remove the module `corral` from the task's folder; nothing of it is left among the task's own files."""
    from corral.runtime import reports

    with _as_owner(plan.owner):
        reports.withdraw(plan)


def _run(argv: list[str], env: dict[str, str], directory: str, *, pass_signals: bool) -> int:
    """Run the command to its end; its exit code as in a shell."""
    try:
        os.chdir(directory)
    except OSError as error:
        raise Failed(_NOT_EXECUTABLE, f"the working directory {directory}: {error.strerror}") from error
    try:
        if pass_signals:
            pid = os.posix_spawnp(argv[0], argv, env, setpgroup=0, setsigmask=(), setsigdef=_WATCHED)
            _groups.append(pid)
        else:
            pid = os.posix_spawnp(argv[0], argv, env, setsigmask=(), setsigdef=_WATCHED)
    except FileNotFoundError:
        raise Failed(_NOT_FOUND, f"the program {argv[0]} was not found") from None
    except OSError as error:
        raise Failed(_NOT_EXECUTABLE, f"{argv[0]} could not be started: {error.strerror}") from error
    _running.append(pid)
    while _missed:
        os.kill(pid, _missed.pop())
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def stage_out(plan: Plan) -> None:
    """Move the command's outputs and storages to their destinations. Raises Failed."""
    for path, uri in plan.outputs:
        _stage(plan, os.path.join(plan.work, path), uri, "output")
    for uri, path, only_read in plan.storages:
        if not only_read:
            _stage(plan, path, uri, "storage", "--storage")


def _stage(plan: Plan, source: str, destination: str, what: str, *options: str) -> None:
    if not plan.stage_command:
        raise Failed(
            RUNTIME_FAILED, f"the {what} cannot be moved for this user: the server's Python is in a closed folder"
        )
    pid = os.posix_spawnp(plan.stage_command[0], [*plan.stage_command, *options, source, destination], os.environ)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code != 0:
        why = ": the storage gave no answer for too long" if code == _STAGE_SILENT else ""
        raise Failed(RUNTIME_FAILED, f"the {what} could not be moved from {source} to {destination}{why}")


def _tell_match(result: dict[str, Any], match: Match) -> int:
    result["pattern"] = match._asdict()
    result["message"] = f"the command ended with {result['exit_code']}; its log says: {match.line}"
    return match.code


def _tell_fault(plan: Plan, result: dict[str, Any], code: int, platform: str) -> None:
    """Append the error block to the message for people."""
    pattern = result.get("pattern") or {}
    log = tails_of(plan.log).decode("utf-8", "replace")
    fault = RuntimeFault(
        exit_code=container_code(code, log),
        trigger=pattern.get("phrase", ""),
        user_exit_code=result.get("exit_code"),
        user_line=pattern.get("line", ""),
        platform_line=platform,
        user_log=_last_lines(log),
    )
    said = result.get("message") or f"the command ended with {code}"
    told = f"{said}\n{error_block(fault)}"
    for value in plan.kept_secrets.values():  # the message is stored, and a command may have printed a secret
        told = told.replace(value, _MASK) if value.strip() else told
    result["message"] = told


def _last_lines(log: str) -> str:
    return "\n".join(log.strip().split("\n")[-_LAST_LINES:])


def _report(plan: Plan, api: Api | None, result: dict[str, Any]) -> None:
    """Report the result by file to the engine, or else to the server; failures do not change the exit code."""
    if not result.get("message"):
        return
    try:
        if plan.result_file:
            with open(plan.result_file, "w", encoding="utf-8") as file:
                json.dump(result, file)
        elif api is not None:
            api.call("POST", "/api/v3/runtime/report", {"attempt": plan.attempt, **result})
    except (OSError, Refused) as error:
        print(f"corral: the report could not be delivered: {error}", file=sys.stderr, flush=True)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Signals raise Interrupted in the block; afterwards they are passed to the command only."""

    def interrupt(number: int, frame: object) -> None:
        raise Interrupted(number)

    for number in _WATCHED:
        signal.signal(number, interrupt)
    yield
    for number in _WATCHED:
        signal.signal(number, _leave_it)


_running: list[int] = []
_missed: list[int] = []
"""Signals that arrived just before the command started; it gets them at once afterwards."""
_groups: list[int] = []
"""The command's process group, if it is not the runtime's own."""


def _leave_it(number: int, frame: object) -> None:
    """Leave a signal to the command: pass it to its process group, or store it if the command has not started."""
    if not _running:
        _missed.append(number)
    for group in _groups:
        with suppress(ProcessLookupError):
            os.killpg(group, number)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
