"""Remove containers of killed tests, because containers outlive their kubelet and runtime on purpose.

Each node records the process that started it, and every new node first removes the remains of those whose owner is
gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.testbeds.kubernetes import cgroups, networks

NODES: Final = "corral-node-"
CONTROL_PLANES: Final = "corral-k8s-"
"""The prefix of their temporary folders."""
_OWNER: Final = "owner.json"


def write_owner(home: Path, bridge: str = "") -> None:
    """Record this process as the owner of `home`; a node's pods are on `bridge`."""
    pid = os.getpid()
    (home / _OWNER).write_text(json.dumps({"pid": pid, "since": _since(pid), "bridge": bridge}))


def orphans(prefix: str = NODES) -> Iterator[Path]:
    """The folders of nodes, or of control planes, whose owner ended without closing them."""
    for home in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with contextlib.suppress(OSError, ValueError):
            owner = json.loads((home / _OWNER).read_text())
            if home.stat().st_uid == os.geteuid() and _since(owner["pid"]) != owner["since"]:
                yield home


def sweep() -> None:
    """Remove the remains of nodes and control planes whose owner ended without closing them."""
    for home in list(orphans(CONTROL_PLANES)):
        shutil.rmtree(home, ignore_errors=True)
    for home in list(orphans(NODES)):
        with contextlib.suppress(FileNotFoundError):  # another run may remove it too
            remove(home, json.loads((home / _OWNER).read_text())["bridge"])


def remove(home: Path, bridge: str) -> None:
    """Remove a node whose kubelet and runtime have ended: its processes, mounts, cgroups, links and files."""
    cgroups.Tree(home.name).remove(lambda: _shims(home))
    _forget_elsewhere(home)
    unmount(home)
    networks.remove(bridge)
    shutil.rmtree(home, ignore_errors=True)


def _since(pid: int) -> str:
    """The start time of a process, in the kernel's ticks; "" when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def _shims(home: Path) -> list[int]:
    """containerd's shims, which are in no cgroup of the node: those whose command line has this node's socket."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if "containerd-shim" in words[0] and f"{home}/containerd.sock" in words:
                found.append(int(folder.name))
    return found


def unmount(home: Path) -> None:
    """Unmount every mount below the folder, the newest first."""
    places = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for place in reversed(places):
        if place.startswith(f"{home}/"):
            subprocess.run(["umount", "--lazy", place], check=False, capture_output=True)


def _forget_elsewhere(home: Path) -> None:
    """Remove files in fixed places that no configuration can move.

    These are the shims' sockets, CNI's results and the kubelet's links to logs.
    """
    for file in (home / "run").glob("io.containerd.runtime.v2.task/*/*/bootstrap.json"):
        address = json.loads(file.read_text()).get("address", "")
        Path(address.removeprefix("unix://")).unlink(missing_ok=True)
    for file in Path("/var/lib/cni/results").glob("*"):
        if f'"{home}/' in file.read_text(errors="replace"):
            file.unlink(missing_ok=True)
    for link in Path("/var/log/containers").glob("*.log"):
        if link.is_symlink() and str(link.readlink()).startswith(f"{home}/"):
            link.unlink(missing_ok=True)
