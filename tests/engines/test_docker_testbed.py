"""A test's Docker daemon leaves nothing behind, also when its test was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.testbeds import docker

_BEGIN = """
from tests.testbeds import docker
import os, sys
daemon = docker.DockerDaemon()
daemon.import_busybox("box")
daemon.client("run", "--detach", "--network", "host", "box", "/bin/sleep", "100000")
print(daemon.host, flush=True)
sys.stdin.read()
daemon.close()
"""


@pytest.mark.parametrize("killed", [False, True])
def test_a_daemon_leaves_no_process_no_mount_and_no_file(killed: bool) -> None:
    if reason := docker.missing():
        pytest.skip(reason)
    begun = subprocess.Popen(
        [sys.executable, "-c", _BEGIN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert begun.stdout is not None and begun.stdin is not None
    home = Path(begun.stdout.readline().removeprefix("unix://")).parent
    assert traces(home), "the daemon runs"
    if killed:
        os.kill(begun.pid, signal.SIGKILL)
    begun.communicate()
    if killed:
        assert traces(home), "nobody has ended it"
        docker.sweep()
    assert traces(home) == []
    assert not home.exists()


def traces(home: Path) -> list[str]:
    """Processes and mounts that name the daemon's folder."""
    found = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f" {home}/" in line]
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().decode(errors="replace")
        except OSError:
            continue
        found += [words] if f"{home}/" in words else []
    return found
