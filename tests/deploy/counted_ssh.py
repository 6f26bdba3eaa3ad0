"""A program `ssh` that writes down how it was called, and is then OpenSSH's own: it shows what hosts are asked."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path


class CountedSsh:
    """The calls of `ssh` by commands with this environment."""

    def __init__(self, folder: Path) -> None:
        real = shutil.which("ssh")
        assert real is not None
        folder.mkdir()
        self._calls = folder / "calls"
        program = folder / "ssh"
        # The words from the address on: options come before two dashes.
        program.write_text(
            f'#!/bin/sh\nall="$*"\nprintf \'%s\\n\' "${{all##* -- }}" >>{shlex.quote(str(self._calls))}\n'
            f'exec {shlex.quote(real)} "$@"\n'
        )
        program.chmod(0o755)
        self._folder = folder

    def environment(self) -> dict[str, str]:
        """That of a command whose calls are written down."""
        return {**os.environ, "PATH": f"{self._folder}:{os.environ['PATH']}"}

    def by_host(self) -> dict[str, list[str]]:
        """The commands that each address was sent since the last look, in order; "" is a connection."""
        found: dict[str, list[str]] = {}
        for line in self._calls.read_text().splitlines() if self._calls.exists() else ():
            address, _, command = line.partition(" ")
            found.setdefault(address, []).append(command)
        self._calls.unlink(missing_ok=True)
        return found
