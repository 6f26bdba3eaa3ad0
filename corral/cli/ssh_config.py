"""The entry of `~/.ssh/config` by which ssh, scp and editors reach tasks as `JOB.corral`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from corral.cli.output import say
from corral.cli.ssh_files import SUFFIX, SshFiles, quoted, replace
from corral.kernel.errors import InvalidInput

if TYPE_CHECKING:
    from corral.cli.ssh_files import SshName

_BEGIN: Final = "# Corral: ssh JOB.corral (corral ssh config --remove takes this out)"
_LISTED: Final = re.compile(r"^Host ([A-Za-z0-9._~-]+)$", re.MULTILINE)
_PATTERN: Final = f"*{SUFFIX},!*'*"
"""Hosts with a quotation mark are left out: they would end the word of a shell that they are in."""


def shown(names: Iterable[SshName]) -> str:
    """The text of the configuration, which names these jobs for editors."""
    return _text(SshFiles.here(), {name.host for name in names})


def installed(names: Iterable[SshName]) -> None:
    """Write the configuration into a file of its own, and name that at the top of `~/.ssh/config`.

    Raises InvalidInput when a file cannot be read or written.
    """
    files = SshFiles.here()
    own, users = files.folder / "config", _users_file()
    try:
        files.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        before = own.read_text() if own.exists() else ""
        replace(own, _text(files, {*_LISTED.findall(before), *(name.host for name in names)}))
        users.parent.mkdir(exist_ok=True, mode=0o700)
        rest = _without(users.read_text()) if users.exists() else ""
        replace(users, f"{_BEGIN}\nInclude {quoted(own)}\n\n{rest}")
    except OSError as error:
        raise _unwritable(error) from None
    say(f"{users} includes {own}: ssh JOB{SUFFIX} enters a job's task.")


def removed() -> None:
    """Take the configuration out again.

    Raises InvalidInput when a file cannot be read or written.
    """
    own, users = SshFiles.here().folder / "config", _users_file()
    try:
        text = users.read_text() if users.exists() else ""
        if _BEGIN in text:
            replace(users, _without(text))
        own.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(error) from None
    say(f"{users} has no entry of Corral.")


def _text(files: SshFiles, hosts: Iterable[str]) -> str:
    named = "".join(f"Host {host}\n" for host in sorted(hosts))
    options = "".join(f"    {option}\n" for option in files.options())
    check = files.prepare_command().replace("\\", "\\\\").replace('"', '\\"')
    # The first block has no options: it has the key signed before ssh reads the certificate.
    return f'{named}Match host "{_PATTERN}" exec "{check}"\nMatch host "{_PATTERN}"\n{options}Match all\n'


def _without(text: str) -> str:
    """The text of `~/.ssh/config` without Corral's lines."""
    return re.sub(rf"{re.escape(_BEGIN)}\nInclude [^\n]*\n\n?", "", text)


def _users_file() -> Path:
    """The user's configuration; where it is a link, the file that it leads to."""
    return Path(os.path.realpath(os.path.expanduser("~/.ssh/config")))


def _unwritable(error: OSError) -> InvalidInput:
    return InvalidInput("unwritable-config", f"{error.filename} cannot be read or written: {error.strerror}.")
