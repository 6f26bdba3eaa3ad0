"""The files of `corral ssh` on this machine: its key, and a certificate and a host key for each task that is entered.

They lie in one private folder. The key alone opens nothing: each connection needs a certificate, which the server signs
for a few minutes, and a sign-in.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from corral.kernel.errors import InvalidInput, NotFound, Unavailable

if TYPE_CHECKING:
    from corral.client.sync import Client

SUFFIX: Final = ".corral"
_JOB: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._~-]{0,199}")
_TASK: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}-[0-9]{1,7}")
_KEYGEN_SECONDS: Final = 60


class SshName(NamedTuple):
    """A job and its task; as a host of ssh: `TASK.JOB.corral` or, of a job of one task, `JOB.corral`."""

    job: str
    task: str = ""

    @classmethod
    def of_job(cls, job: str) -> SshName:
        """The name for the only task of a job.

        Raises InvalidInput for what is no name of a job.
        """
        if not _JOB.fullmatch(job):
            raise InvalidInput("bad-host", f"{job[:100]!r} cannot be the name of a job.")
        return cls(job)

    @classmethod
    def of_host(cls, host: str) -> SshName:
        """The name that a host of ssh stands for.

        Raises InvalidInput.
        """
        before = host.removesuffix(SUFFIX)
        first, dot, rest = before.partition(".")
        if before == host or not _JOB.fullmatch(before):
            raise InvalidInput("bad-host", f"{host[:100]!r} is not written as JOB{SUFFIX} or TASK.JOB{SUFFIX}.")
        return cls(rest, first) if dot and rest and _TASK.fullmatch(first) else cls(before)

    @property
    def host(self) -> str:
        """The host by which ssh knows it."""
        return f"{self.task}.{self.job}{SUFFIX}" if self.task else f"{self.job}{SUFFIX}"

    def with_task(self, role: str, index: int) -> SshName:
        """The same job with a task."""
        return self._replace(task=f"{role}-{index}")


class SshFiles:
    """The folder of the files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._hosts = folder / "hosts"
        self._identity = folder / "identity"

    @classmethod
    def here(cls) -> SshFiles:
        """The files beside the sign-ins of this user."""
        from corral.client import config

        return cls(config.config_path().absolute().parent / "ssh")

    def prepare(self, client: Client, name: SshName, *, host: str = "") -> None:
        """Have this machine's key signed for a task, and note the server's host key for it.

        Raises CorralError.
        """
        role, _, index = name.task.rpartition("-")
        self.make_key()
        public = (self._identity / "key.pub").read_text().split()
        given = client.ssh_access(name.job, role, int(index), " ".join(public[:2]))
        host = host or name.host
        self._hosts.mkdir(exist_ok=True, mode=0o700)
        replace(self._hosts / f"{host}-known", f"corral {_one_line(given['hostKey'])}\n")
        replace(self._hosts / f"{host}-cert.pub", f"{_one_line(given['certificate'])}\n")

    def make_key(self) -> None:
        """Make this machine's key, unless there is one.

        Raises NotFound without OpenSSH, Unavailable when the key cannot be made.
        """
        if (self._identity / "key").exists():
            return
        program = find_program("ssh-keygen")
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=".identity-") as made:
            fresh = Path(made, "identity")
            fresh.mkdir(mode=0o700)
            words = [program, "-q", "-t", "ed25519", "-N", "", "-C", "corral", "-f", str(fresh / "key")]
            done = subprocess.run(words, capture_output=True, timeout=_KEYGEN_SECONDS, check=False)
            if done.returncode:
                raise Unavailable("no-key", f"ssh-keygen could not make a key: {done.stderr.decode()[:200].strip()}.")
            with contextlib.suppress(OSError):  # another process was quicker: its key is as good
                fresh.rename(self._identity)

    def options(self, name: SshName | None = None) -> list[str]:
        """The options of ssh for a name; without one, for every host of `*.corral`, in ssh's own tokens."""
        host = name.host if name else "%n"
        return [
            f"ProxyCommand {own_command()} ssh stdio {shlex.quote(host) if name else _HOST}",
            "User corral",
            "HostKeyAlias corral",
            "CheckHostIP no",
            "StrictHostKeyChecking yes",
            "UpdateHostKeys no",
            "GlobalKnownHostsFile /dev/null",
            f'UserKnownHostsFile {quoted(self._hosts)[:-1]}/{host}-known"',
            f"IdentityFile {quoted(self._identity / 'key')}",
            f'CertificateFile {quoted(self._hosts)[:-1]}/{host}-cert.pub"',
            "IdentitiesOnly yes",
            "IdentityAgent none",
            "AddKeysToAgent no",
            "PubkeyAuthentication yes",
            "PreferredAuthentications publickey",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "ForwardAgent no",
            "ForwardX11 no",
        ]

    def prepare_command(self) -> str:
        """The command by which ssh has the key signed before it connects."""
        return f"{own_command()} ssh prepare {_HOST}"


_HOST: Final = "'%n'"
"""The host as a word of a shell; the configuration leaves out hosts that have a quotation mark."""


def own_command() -> str:
    """This program as words of a shell in a value of ssh, where a percent sign is doubled."""
    program = shutil.which("corral")
    words = [program] if program else [sys.executable, "-m", "corral.cli.main"]
    return " ".join(shlex.quote(word) for word in words).replace("%", "%%")


def quoted(path: Path) -> str:
    """A path as a value of ssh's options, which have quotation marks and tokens."""
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"'


def find_program(name: str) -> str:
    """The path of a program of OpenSSH.

    Raises NotFound.
    """
    found = shutil.which(name)
    if found is None:
        message = f"There is no {name} on PATH: install OpenSSH's client, or use `corral exec` and `corral cp`."
        raise NotFound("no-openssh", message)
    return found


def _one_line(text: str) -> str:
    """A key or certificate as one line, whatever a server answered."""
    return " ".join(text.split()[:2])


def replace(path: Path, text: str) -> None:
    """Write a private file, whole or not at all."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
