"""The steps of OpenPAI's runtime plug-ins around a command, as shell text for any image with a shell.

Each plug-in is a step before the command, after it, or both, in a file of its own that `task.sh` sources. The runtime
fills secrets into the files, so the stored text has none. A step that fails ends the task with its exit code, unless
its plug-in has `failurePolicy: ignore`. If the image lacks the program of `ssh` or `tensorboard`, the step only prints
that, unless its plug-in has `failurePolicy: fail`: OpenPAI's own page adds `ssh` to every job.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from corral.compat.openpai.frameworks.environment import PaiJob, PaiRole, prerequisites
from corral.compat.openpai.frameworks.scripts import CLONE, SHELL_HEAD, SSH, SSH_BARRIER, TENSORBOARD
from corral.compat.openpai.language.names import SSH_KEYS, VERSION
from corral.compat.openpai.language.translation import plugins

CMD_PREREQUISITE: Final = "com.microsoft.pai.runtimeplugin.cmd"
BARRIER_MINUTES: Final = 30
CODE_FOLDER: Final = "/usr/local/pai/code"
TENSORBOARD_PORT: Final = "tensorboard"
_STARTS, _SUCCEEDS = "taskStarts", "taskSucceeds"


class Step(NamedTuple):
    """The steps of one plug-in in this task; empty text is no step."""

    name: str
    before: str = ""
    after: str = ""
    ignore_failure: bool = False


class Around(NamedTuple):
    """The script files of a task, and the SSH settings for the runtime."""

    files: dict[str, str]
    ssh: dict[str, Any]
    """Empty if the task runs no SSH server."""


def around(job: PaiJob, role: PaiRole, index: int, command: str, *, image: bool) -> Around:
    """The scripts of one task."""
    steps = [*_prerequisites(job, role), *_plugins(job, role, index)]
    if _always(job):
        steps.insert(0, Step("ssh", SSH.format(strict="", open="", quiet="1", find="command -v sshd >/dev/null 2>&1")))
    files = {"user.sh": f"{command}\n"}
    head = [SHELL_HEAD, f"PAI_IN_IMAGE={'1' if image else ''}", "export PAI_IN_IMAGE"]
    before: list[str] = []
    after: list[str] = []
    for number, step in enumerate(steps):
        for text, lines, when in ((step.before, before, "before"), (step.after, after, "after")):
            if text:
                name = f"{when}-{number}-{step.name}.sh"
                files[name] = text if text.endswith("\n") else f"{text}\n"
                lines.append(f"{'try' if step.ignore_failure else 'must'} {name}")
    files["task.sh"] = "\n".join([*head, *_with_words(before), *_command(after, image), ""])
    return Around(files, _ssh_asked(job, role))


def tensorboard_index(job: PaiJob) -> tuple[str, int] | None:
    """The task (by Corral's role) that runs TensorBoard on a port chosen by Corral; None if none does."""
    asked = [each for each in plugins(job.protocol) if each.get("plugin") == "tensorboard"]
    return (job.roles[0].corral, 0) if asked and not _parameters(asked[0]).get("port") else None


def _with_words(lines: Sequence[str]) -> Iterator[str]:
    """Shell lines that source each step, so that its exports reach the command."""
    for line in lines:
        word, name = line.split(" ", 1)
        if word == "try":
            yield f'( . "$PAI_RUNTIME_DIR/{name}" ) || pai_say "{name} failed with $?, which its plug-in says to ignore"'
        else:
            yield f'. "$PAI_RUNTIME_DIR/{name}" || pai_end $? "{name} failed"'


def _command(after: Sequence[str], image: bool) -> list[str]:
    """Shell lines of the command itself: an `exec`, unless steps follow on its success."""
    if not after:
        return ['exec "$PAI_SHELL" "$PAI_RUNTIME_DIR/user.sh"']
    if image:  # in a container only the first process gets the signals
        run = [
            '"$PAI_SHELL" "$PAI_RUNTIME_DIR/user.sh" &',
            "pai_child=$!",
            *(f"trap 'kill -{name} $pai_child 2>/dev/null' {name}" for name in ("TERM", "INT", "HUP")),
            "wait $pai_child; pai_code=$?",
            "while kill -0 $pai_child 2>/dev/null; do wait $pai_child; pai_code=$?; done",
        ]
    else:
        run = ["trap : TERM INT HUP", '"$PAI_SHELL" "$PAI_RUNTIME_DIR/user.sh"; pai_code=$?']
    return [*run, "trap - TERM INT HUP", "[ $pai_code -eq 0 ] || exit $pai_code", *_with_words(after), "exit 0"]


def _plugins(job: PaiJob, role: PaiRole, index: int) -> Iterator[Step]:
    for each in plugins(job.protocol):
        roles = each.get("taskRoles")
        if isinstance(roles, list) and role.name not in roles:
            continue
        step = _plugin(each, job, role, index)
        if step is not None:
            yield step._replace(ignore_failure=each.get("failurePolicy") == "ignore")


def _plugin(each: Mapping[str, Any], job: PaiJob, role: PaiRole, index: int) -> Step | None:
    parameters, strict = _parameters(each), each.get("failurePolicy") == "fail"
    match each.get("plugin"):
        case "ssh":
            return _ssh(parameters, strict)
        case "tensorboard" if role == job.roles[0] and index == 0:
            return _tensorboard(parameters, strict)
        case "cmd":
            return _commands("cmd", parameters)
        case "git":
            return _git(parameters)
    return None


def _commands(name: str, parameters: Mapping[str, Any]) -> Step:
    """A step from both forms: lists of commands, and commands by event."""
    before, after = _lines(parameters.get("preCommands")), _lines(parameters.get("postCommands"))
    callbacks = parameters.get("callbacks")
    for callback in callbacks if isinstance(callbacks, list) else ():
        if isinstance(callback, Mapping):
            into = {_STARTS: before, _SUCCEEDS: after}.get(str(callback.get("event")), [])
            into += _lines(callback.get("commands"))
    return Step(name, "\n".join(before), "\n".join(after))


def _prerequisites(job: PaiJob, role: PaiRole) -> Iterator[Step]:
    """The start and success steps of the prerequisites that the role names; required prerequisites come first."""
    known = {str(each.get("name")): each for each in prerequisites(job.protocol)}
    wanted = role.said.get("prerequisites")
    done: set[str] = set()

    def with_required(name: str) -> Iterator[Step]:
        each = known.get(name)
        if name in done or each is None:
            return
        done.add(name)
        for other in each.get("require") or ():
            yield from with_required(str(other))
        if each.get("plugin") == CMD_PREREQUISITE:
            yield _commands("prerequisite", each)

    for name in wanted if isinstance(wanted, list) else ():
        yield from with_required(str(name))


def _git(parameters: Mapping[str, Any]) -> Step:
    options = parameters.get("options") or []
    words = [options] if isinstance(options, str) else list(options)
    split = [word for option in words for word in shlex.split(str(option))]
    return Step(
        "git",
        CLONE.format(
            uri=str(parameters.get("repo_uri", "")),
            options=" ".join(map(shlex.quote, split)),
            folder=shlex.quote(str(parameters.get("clone_dir") or "")),
            default=shlex.quote(CODE_FOLDER),
        ),
    )


def _tensorboard(parameters: Mapping[str, Any], strict: bool) -> Step:
    folders = parameters.get("logdir")
    folders = folders if isinstance(folders, Mapping) else {"default": str(folders)} if folders else {}
    port = str(parameters.get("port") or "") or f"$PAI_CONTAINER_HOST_{TENSORBOARD_PORT}_PORT_LIST"
    named = ",".join(f"{name}:{path}" for name, path in folders.items())
    one = next(map(str, folders.values())) if len(folders) == 1 else ""
    logdir = f"--logdir={one}" if one else f"--logdir_spec={named}"
    words = {"port": port, "logdir": logdir.replace('"', ""), "old": f"--logdir={one or named}".replace('"', "")}
    return Step("tensorboard", TENSORBOARD.format(strict="1" if strict else "", **words))


def _ssh(parameters: Mapping[str, Any], strict: bool) -> Step | None:
    job_ssh, user_ssh = _wants(parameters)
    if not job_ssh and not user_ssh:
        return None
    barrier = parameters.get("sshbarrier") is True
    strict_text, open_text = "1" if strict or barrier else "", "1" if user_ssh else ""
    text = SSH.format(strict=strict_text, open=open_text, quiet="", find="pai_have sshd openssh-server")
    if barrier:
        minutes = parameters.get("sshbarrierTimeout")
        seconds = int(60 * float(BARRIER_MINUTES if minutes is None else minutes))
        text += SSH_BARRIER.format(seconds=seconds)
    return Step("ssh", text)


def _always(job: PaiJob) -> bool:
    """Whether tasks get an SSH server without asking: in the YARN era they did, if the image had one."""
    return job.annotations.get(VERSION) == "1" and all(each.get("plugin") != "ssh" for each in plugins(job.protocol))


def _wants(parameters: Mapping[str, Any]) -> tuple[bool, bool]:
    """Whether the tasks can reach each other by SSH, and whether the user can reach them."""
    user = parameters.get("userssh")
    asked = isinstance(user, Mapping) and (user.get("type") == "system" or bool(user.get("value")))
    return parameters.get("jobssh") is True, asked


def _ssh_asked(job: PaiJob, role: PaiRole) -> dict[str, Any]:
    if _always(job):
        return {"roles": [each.name for each in job.roles], "jobssh": True, "keys": ""}
    keys: list[str] = []
    roles: list[str] = []
    job_ssh = False
    for each in plugins(job.protocol):
        parameters = _parameters(each)
        if each.get("plugin") != "ssh" or not any(_wants(parameters)):
            continue
        given = each.get("taskRoles")
        roles += [one.name for one in job.roles if not isinstance(given, list) or one.name in given]
        if role.name not in roles:
            continue
        job_ssh = job_ssh or parameters.get("jobssh") is True
        user = parameters.get("userssh")
        if isinstance(user, Mapping):
            system = user.get("type") == "system"
            keys.append(job.annotations.get(SSH_KEYS, "") if system else str(user.get("value") or ""))
    return {"roles": roles, "jobssh": job_ssh, "keys": "\n".join(keys)} if role.name in roles else {}


def _parameters(each: Mapping[str, Any]) -> Mapping[str, Any]:
    found = each.get("parameters")
    return found if isinstance(found, Mapping) else {}


def _lines(commands: Any) -> list[str]:
    if isinstance(commands, str):
        return [commands]
    return [str(command) for command in commands] if isinstance(commands, list) else []
