"""Run an administrator's check scripts by node-problem-detector's convention for custom plugins.

A script ends with 0 when all is well, with 1 when there is a problem, and with anything else when it cannot tell. The
first bytes that it prints are the message. Source: Kubernetes' node-problem-detector, `docs/custom_plugin_monitor.md`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from corral.kernel.errors import InvalidInput
from corral.model.health.signs import Sign, SignKind
from corral.model.metrics.agent_page import MOST_CHECKS

OK: Final = 0
PROBLEM: Final = 1
MESSAGE_BYTES: Final = 80
"""Bytes of output that are the message; the convention's default."""
_MOST_OUTPUT: Final = 65_536
"""Bytes of output that a script may print; a longer one is ended."""
_MOST_SCRIPTS: Final = MOST_CHECKS
_END_SECONDS: Final = 5.0
"""Seconds to wait for the end of a script that was killed."""


class Checked(NamedTuple):
    """How one run of a script ended."""

    script: str
    node: str
    code: int | None
    """Its exit code; None: it was ended because it took too long or printed too much, or could not be started."""
    message: str

    def sign(self, now: float) -> Sign | None:
        """The sign of a problem at a time (seconds since 1970); None if there is none, or nobody can tell."""
        if self.code != PROBLEM:
            return None
        reason = f"check {self.script}: {self.message or 'no message'}"
        return Sign(SignKind.CHECK_FAILED, self.node, now, reason, source=self.script)


def scripts_in(folder: Path) -> list[Path]:
    """The scripts of a folder, by name.

    Raises InvalidInput if the folder or a script could be changed by others than its owner, who must be root or the
    server's user; then none of them runs.
    """
    try:
        _check_owner(folder)
        names = sorted(each for each in folder.iterdir() if not each.name.startswith("."))
        found = [each for each in names if each.is_file() and os.access(each, os.X_OK)]
        for each in found:
            _check_owner(each)
    except OSError as error:
        raise InvalidInput("bad-checks", f"The folder of check scripts {folder} cannot be read: {error}.") from None
    if len(found) > _MOST_SCRIPTS:
        raise InvalidInput("bad-checks", f"{folder} has {len(found)} check scripts; at most {_MOST_SCRIPTS} are run.")
    return found


def _check_owner(path: Path) -> None:
    known = path.stat()
    if known.st_uid not in (0, os.geteuid()):
        raise InvalidInput("bad-checks", f"{path} belongs to uid {known.st_uid}; check scripts must be root's or ours.")
    if known.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise InvalidInput("bad-checks", f"{path} can be written by others than its owner; take that right away.")


async def run_script(script: Path, node: str, seconds: float) -> Checked:
    """Run a script for a node, which it finds in `CORRAL_NODE`; it is killed after some seconds."""
    env = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "CORRAL_NODE": node,
    }
    name = script.name.encode(errors="replace").decode()  # it may be no UTF-8
    quiet, pipe = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            str(script), stdin=quiet, stdout=pipe, stderr=quiet, env=env, cwd="/", start_new_session=True
        )
    except OSError as error:
        return Checked(name, node, None, f"it could not be started: {error.strerror}")
    try:
        async with asyncio.timeout(seconds):
            output = await _read(process)
            code = None if len(output) > _MOST_OUTPUT else await process.wait()
    except TimeoutError:
        return Checked(name, node, None, f"it took longer than {seconds:g} s")
    finally:
        await _end(process)
    if code is None:
        return Checked(name, node, None, f"it printed more than {_MOST_OUTPUT} bytes")
    return Checked(name, node, code, _message(output))


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill what is left of a script, and wait for it; a child that left its process group may keep the pipe open."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_END_SECONDS):
            while process.stdout is not None and await process.stdout.read(_MOST_OUTPUT):
                pass  # wait() returns only when the pipe is read to its end
            await process.wait()


async def _read(process: asyncio.subprocess.Process) -> bytes:
    """What a script prints, at most a byte more than it may."""
    assert process.stdout is not None
    output = b""
    while len(output) <= _MOST_OUTPUT and (chunk := await process.stdout.read(_MOST_OUTPUT + 1 - len(output))):
        output += chunk
    return output


def _message(output: bytes) -> str:
    text = output[:MESSAGE_BYTES].decode(errors="ignore")
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


async def run_all(folder: Path, nodes: Sequence[str], seconds: float) -> list[Checked]:
    """Run each script for each node, one after the other.

    Raises InvalidInput like `scripts_in`.
    """
    return [await run_script(script, node, seconds) for script in scripts_in(folder) for node in nodes]
