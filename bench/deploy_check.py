"""Measure `corral deploy check` of 50 hosts: an sshd in a namespace each, and the ports between all pairs really tried."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

HOSTS, PLANES = 50, 3
_NEIGHBOURS: Final = Path("/proc/sys/net/ipv4/neigh/default")
_ENOUGH: Final = 16384
"""Hosts that this machine may know the hardware addresses of, in all namespaces together; 1024 is Linux' default."""


def measure() -> dict[str, float]:
    """The seconds of a check, from an empty file of pinned keys; as root. Raises RuntimeError where something failed."""
    from tests.deploy.ssh_hosts import SshHosts

    names = tuple(f"n{number}" for number in range(HOSTS))
    with tempfile.TemporaryDirectory(prefix="corral-deploy-") as name, _many_neighbours():
        folder = Path(name)
        folder.chmod(0o755)
        running = SshHosts(folder, names, {})
        try:
            rows = [
                f"  {each}: {{address: {running.address[each]}, roles: [{'control-plane' if at < PLANES else 'worker'}]}}\n"
                for at, each in enumerate(names)
            ]
            (folder / "hosts.yaml").write_text(f"ssh: {{user: root, key: key}}\nhosts:\n{''.join(rows)}")
            command = [
                sys.executable,
                "-m",
                "corral.cli.main",
                "deploy",
                "check",
                str(folder / "hosts.yaml"),
                "-o",
                "json",
            ]
            begun = time.monotonic()
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            seconds = time.monotonic() - begun
        finally:
            running.stop()
    findings = [each for host in json.loads(done.stdout)["hosts"] for each in host["findings"]]
    closed = [
        each["message"] for each in findings if each["check"] in ("ssh", "ports", "udp") and each["level"] != "ok"
    ]
    if closed:
        raise RuntimeError(f"not everything was reached: {closed[:3]}")
    return {"seconds": seconds}


@contextlib.contextmanager
def _many_neighbours() -> Iterator[None]:
    """Raise the bounds of the table of neighbours, which all namespaces share, and set them back."""
    before = {name: (_NEIGHBOURS / name).read_text() for name in ("gc_thresh3", "gc_thresh2")}
    for name in before:
        (_NEIGHBOURS / name).write_text(f"{_ENOUGH}\n")
    try:
        yield
    finally:
        for name in ("gc_thresh2", "gc_thresh3"):
            (_NEIGHBOURS / name).write_text(before[name])
