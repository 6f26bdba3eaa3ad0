"""Run a command under a shell that reports its exit code at the end of its output.

A cluster may lose the end of a session and then report success (kubernetes/kubectl issue 1726). So the Status of the API
server is no proof of exit code 0. A shell in the container writes two marks into the output: one before the command and
one, with the exit code, after it. The output is one stream in order, so the second mark also proves that all output of
the command before it has arrived.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from typing import Final

_START: Final = b"\x1e"
"""The first byte of a mark. Terminals pass it on unchanged, and few programs write it."""
_MOST_CODE: Final = 255
_SCRIPT: Final = r"""
exec 3>&2 2>/dev/null
_corral_mark=$1
shift
printf '\036%s+' "$_corral_mark" || { echo 'printf: not found'; exit 126; }
trap : INT QUIT TERM USR1 USR2 ALRM
(exec "$@") 2>&1 3>&-
_corral_code=$?
trap '' TTOU
printf '\036%s=%s;' "$_corral_mark" "$_corral_code"
exit "$_corral_code"
"""
"""The shell's text. Its first argument is the name of the marks; the others are the command.

Its own messages, such as "Segmentation fault", are dropped, as the command alone would not print them. `exec` in a
subshell runs no command that is built into the shell. Caught signals leave the shell alive and have their default effect
in the command; HUP is not among them, because the kernel passes it on to the command when the shell ends of it.
Descriptor 3 keeps the pod's standard error open: containerd ends a command's input when either output is closed.
"""


class ExitReport:
    """The marks of one session: they are cut out of its output and give the exit code."""

    def __init__(self, name: str = "") -> None:
        """`name` must be unpredictable, so that no output contains a mark by chance; default: a random one."""
        self.name = name or secrets.token_hex(16).upper()
        self.begun = False
        """Whether the shell runs."""
        self.code: int | None = None
        """The exit code of the command, once its mark has arrived."""
        self._start = _START + self.name.encode()
        self._mark = re.compile(re.escape(self._start) + rb"(?:\+|=([0-9]{1,3});)")
        self._part = re.compile(re.escape(self._start) + rb"=[0-9]{0,3}")
        self._held = b""

    def words(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that runs a command with marks."""
        return ["sh", "-c", _SCRIPT, "sh", self.name, *argv]

    def feed(self, data: bytes) -> bytes:
        """Return the output without marks. Only the possible start of a mark is held back until more arrives."""
        data = self._mark.sub(self._take, self._held + data)
        at = data.rfind(_START)
        if at < 0 or not self._may_grow(data[at:]):
            self._held = b""
            return data
        self._held = data[at:]
        return data[:at]

    def rest(self) -> bytes:
        """Return what was held back, after the output's end."""
        held, self._held = self._held, b""
        return held

    def _may_grow(self, end: bytes) -> bool:
        return self._start.startswith(end) or self._part.fullmatch(end) is not None

    def _take(self, mark: re.Match[bytes]) -> bytes:
        if mark[1] is None:
            self.begun = True
        elif self.code is None:
            self.code = min(int(mark[1]), _MOST_CODE)
        return b""
