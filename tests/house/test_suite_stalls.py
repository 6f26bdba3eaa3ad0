"""Syncs to the disk stall in the programs of a run with `--stalls`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.suite import stalls

SYNC = "import os, tempfile; file = tempfile.TemporaryFile(); os.{call}(file.fileno())"


def test_a_sync_takes_as_long_as_a_stall_in_a_program_and_its_children(tmp_path: Path) -> None:
    more = stalls.environment(tmp_path, 1, milliseconds=300)
    for call in ("fsync", "fdatasync"):
        begun = time.monotonic()
        subprocess.run(
            ["sh", "-c", f"{sys.executable} -c '{SYNC.format(call=call)}'"], env=os.environ | more, check=True
        )
        assert time.monotonic() - begun >= 0.3


def test_nothing_stalls_without_a_share(tmp_path: Path) -> None:
    more = stalls.environment(tmp_path, 0, milliseconds=3_600_000)
    subprocess.run([sys.executable, "-c", SYNC.format(call="fsync")], env=os.environ | more, check=True, timeout=240)
