"""Prepare an OpenPAI task: variables, SSH keys and scripts that OpenPAI's runtime would make inside the container.

It works outside the image, so any image will do. The order is OpenPAI's: after the barrier come variables, files for
plug-ins, a check whether the task's ports are free, and the scripts with their secrets. A secret is in no argument and
in no stored job; a script that contains one deletes itself when it is read.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import os
import re
import socket
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from corral.compat.openpai.runtime.keys import key_pair
from corral.compat.openpai.runtime.variables import Role, address_variables, roles_of
from corral.runtime.peers import Address
from corral.runtime.plug_in import PlugInFailed, PlugInTask, Prepared

FOLDER = ".openpai"
PORT_TAKEN = 253
"""OpenPAI's code ContainerPortConflict."""
MAIN = "task.sh"
_SECRET = re.compile(r"<%\s*\$secrets\.([A-Za-z0-9_.\-\[\]]+?)\s*%>", re.ASCII)
_INDEX = re.compile(r"\[(\d+)\]", re.ASCII)
_JOB_HOST = "corral-job"
"""The common name for the host key of all tasks of a job, whatever their address."""
_START = 'exec "$(command -v bash || command -v sh)" "$0"'


class Place(NamedTuple):
    """The folder of the task's files, the working directory, and whether the task may run under any uid."""

    folder: str
    directory: str
    any_user: bool = False


def prepare(task: PlugInTask) -> Prepared:
    """Write the task's scripts, keys and settings.

    Raises PlugInFailed for a port that is in use, and OSError for files that cannot be written.
    """
    asked, peers = task.steps, task.peers
    folder = os.path.join(task.shared, "openpai") if task.shared else os.path.join(task.work, FOLDER)
    place = Place(folder, task.directory, any_user=bool(task.shared))
    roles, role, index = roles_of(asked["roles"]), str(asked["role"]), int(asked["index"])
    told = address_variables(roles, role, index, peers, place.directory)
    os.makedirs(place.folder, mode=0o777 if place.any_user else 0o700, exist_ok=True)
    if asked.get("ssh"):
        _write_ssh(place, asked["ssh"], task.key, _hosts(roles, asked["ssh"]["roles"], peers))
    _check_ports(_own_ports(roles, role, index, peers))
    for name, text in asked["files"].items():
        _write(place, name, _filled(name, str(text), task.secrets))
    notes = []
    if told.shortened:
        notes.append("the other tasks are too many for a variable each; they are in PAI_TASK_ROLE_..._HOST_LIST")
    return Prepared(["sh", "-c", _START, os.path.join(place.folder, MAIN)], told.variables, notes)


def fill_secrets(text: str, secrets: Mapping[str, str]) -> str:
    """Fill in `<% $secrets.NAME %>` in a text; an unknown name stays as it is."""

    def value(match: re.Match[str]) -> str:
        return secrets.get(_INDEX.sub(r".\1", match[1]), match[0])

    return _SECRET.sub(value, text) if "<%" in text else text


def job_key(secret: str, purpose: str) -> bytes:
    """A key of 32 bytes that only the job's tasks and the server can compute."""
    return hmac.new(secret.encode(), purpose.encode(), hashlib.sha256).digest()


def _filled(name: str, text: str, secrets: Mapping[str, str]) -> str:
    filled = fill_secrets(text, secrets)
    # The shell has the script open while it reads, so removing the name is safe.
    return f'rm -f -- "$PAI_RUNTIME_DIR/{name}"\n{filled}' if filled != text and name.endswith(".sh") else filled


def _own_ports(roles: Sequence[Role], role: str, index: int, peers: Mapping[str, Address]) -> dict[str, list[int]]:
    mine = next(each for each in roles if each.name == role)
    me = peers.get(f"{mine.corral}-{index}", Address("", {}))
    return {label: me.ports.get(name, []) for label, name in mine.ports.items()}


def _check_ports(ports: Mapping[str, Sequence[int]]) -> None:
    for label, numbers in ports.items():
        for number in numbers:
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(("", number))
                except OSError as error:
                    if error.errno != errno.EADDRINUSE:
                        continue  # a port that this user may not bind is the command's problem
                    message = f"port {number} ({label}) of this task is in use by another program"
                    raise PlugInFailed(PORT_TAKEN, message) from error


class _Host(NamedTuple):
    name: str
    address: str
    port: int


def _hosts(roles: Sequence[Role], names: Sequence[str], peers: Mapping[str, Address]) -> list[_Host]:
    """The tasks that run an SSH server, named `ROLE-INDEX`."""
    found = []
    for role in roles:
        if role.name not in names:
            continue
        for index in range(role.tasks):
            peer = peers.get(f"{role.corral}-{index}")
            numbers = peer.ports.get(role.ports.get("ssh", ""), []) if peer else []
            if peer and numbers:
                found.append(_Host(f"{role.name}-{index}", peer.host, numbers[0]))
    return found


def _write_ssh(place: Place, asked: Mapping[str, Any], secret: str, hosts: Sequence[_Host]) -> None:
    """Write keys and settings of SSH client and server; the task fills in `@DIR@`, `@USER@` and `@ATTEMPT@`."""
    job = key_pair(job_key(secret, "openpai-ssh"), "corral-job")
    host = key_pair(job_key(secret, "openpai-ssh-host"), _JOB_HOST)
    inside = Place(os.path.join(place.folder, "ssh"), place.directory, place.any_user)
    os.makedirs(inside.folder, mode=0o755 if place.any_user else 0o700, exist_ok=True)
    # sshd clears the environment: without the marker an engine could not tell whose processes came by ssh.
    given = 'environment="PAI_SSH_SEEN=@DIR@/seen",environment="CORRAL_ATTEMPT=@ATTEMPT@"'
    allowed = [f"{given} {job.public} corral-job"] if asked["jobssh"] else []
    allowed += [line for line in str(asked["keys"]).splitlines() if line.strip()]
    _write(inside, "authorized_keys", "\n".join([*allowed, ""]))
    _write(inside, "host_key", host.private)
    _write(inside, "known_hosts", f"{_JOB_HOST} {host.public}\n")
    _write(inside, "sshd_config", _SERVER)
    _write(inside, "hosts", "".join(f"{each.name}\n" for each in hosts))
    if asked["jobssh"]:
        _write(inside, "id_ed25519", job.private)
        _write(inside, "id_ed25519.pub", f"{job.public} corral-job\n")
        _write(inside, "config", _client(hosts))


_SERVER = """\
HostKey @DIR@/host_key
AuthorizedKeysFile @DIR@/authorized_keys
PidFile @DIR@/sshd.pid
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
PermitUserEnvironment yes
PubkeyAuthentication yes
StrictModes no
UsePAM no
X11Forwarding no
PrintMotd no
MaxStartups 200:30:2000
Subsystem sftp internal-sftp
"""


def _client(hosts: Sequence[_Host]) -> str:
    """The client's settings per task. Common ones are repeated, since `Match` would run a program at every call."""
    common = f"""\
  HostKeyAlias {_JOB_HOST}
  UserKnownHostsFile @DIR@/known_hosts
  StrictHostKeyChecking yes
  IdentityFile @DIR@/id_ed25519
  IdentitiesOnly yes
  User @USER@
  LogLevel ERROR
"""
    return "".join(f"Host {host.name}\n  HostName {host.address}\n  Port {host.port}\n{common}" for host in hosts)


def _write(place: Place, name: str, text: str) -> None:
    path = os.path.join(place.folder, name)
    mode = 0o644 if place.any_user else 0o600
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
