"""Commands on a terminal of their own.

`pexpect.spawn` runs Python between fork and exec. In a test process that has threads its child once hung there for ever;
here `subprocess` starts the command, whose child runs nothing that can wait for a thread.
"""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence

from pexpect import EOF
from pexpect.fdpexpect import fdspawn

INTERRUPT = "\x03"


class Terminal(fdspawn):  # type: ignore[misc]  # pexpect has no types
    """A command that runs on a new terminal of 40 lines and 160 columns, as its controlling terminal."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        ours, theirs = pty.openpty()
        try:
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
            self.process = subprocess.Popen(
                ["setsid", "--ctty", *command], stdin=theirs, stdout=theirs, stderr=theirs, env=dict(env)
            )
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        super().__init__(ours, encoding="utf-8", timeout=60)

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.send(INTERRUPT)

    def ended(self) -> int:
        """Wait until the command has closed its terminal and ended; returns its exit code."""
        try:
            self.expect(EOF)
            return self.process.wait(self.timeout)
        finally:
            self.close()

    def close(self) -> None:
        """Close the terminal, and kill the command if it still runs."""
        super().close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
