"""Kill `corral deploy up` (-9) at each of its steps in turn, and compare with a host on which none was killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.deploy.cluster_on_hosts import Cluster

_STEP: Final = re.compile(r"^(\S+): \[\d+/\d+\] (.+)$")
_MOST: Final = 100
"""Cuts after which it must have come to its end."""


def measure() -> dict[str, float]:
    """How often `up` was cut, and how many lines of the two workers' states differ at the end, as root."""
    from tests.deploy.cluster_on_hosts import HEAD, WORKERS, Cluster, state_of
    from tests.testbeds.hosts.machines import Machines

    machines = Machines((HEAD, *WORKERS))
    try:
        with tempfile.TemporaryDirectory(prefix="corral-deploy-") as name:
            lab = Cluster(machines, Path(name))
            begun = time.monotonic()
            cuts = _cut_at_each(lab, HEAD, WORKERS[0])
            seconds = time.monotonic() - begun
            lab.up()
            again = [each["name"] for each in lab.up().values() if each["done"]]
            if again:
                raise RuntimeError(f"a second up did something on {again}")
            nodes = lab.kubectl("get nodes --no-headers")
            if nodes.count(" Ready ") != len(machines.address):
                raise RuntimeError(f"not all nodes are ready: {nodes}")
            cut, whole = (state_of(lab, worker).splitlines() for worker in WORKERS)
            different = len(set(cut) ^ set(whole))
    finally:
        machines.stop()
    return {"cuts": cuts, "seconds": seconds, "different": different}


def _cut_at_each(lab: Cluster, *hosts: str) -> int:
    """Begin `up` of these hosts until one comes to its end; each other is killed at its first step that is new."""
    seen: set[tuple[str, str]] = set()
    for _ in range(_MOST):
        if not _cut(lab, hosts, seen):
            return len(seen)
    raise RuntimeError(f"up did not come to its end after {_MOST} cuts: {sorted(seen)}")


def _cut(lab: Cluster, hosts: tuple[str, ...], seen: set[tuple[str, str]]) -> bool:
    """Whether an `up` was killed; else it did all that was left."""
    from tests.deploy.cluster_on_hosts import FULL, TIMEOUT

    chosen = [word for host in hosts for word in ("--host", host)]
    command = lab.words("up", *TIMEOUT, *FULL, "--bundle", str(lab.given), *chosen)
    # What it does not get to remove goes with the hosts.
    env = os.environ | {"TMPDIR": str(lab.machines.home)}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env) as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            found = _STEP.match(line)
            if found and (found[1], found[2]) not in seen:
                seen.add((found[1], found[2]))
                os.kill(process.pid, signal.SIGKILL)
                return True
        if process.wait():
            raise RuntimeError(f"up ended with {process.returncode}: {''.join(said)}\n{lab.logs()[-6000:]}")
    return False
