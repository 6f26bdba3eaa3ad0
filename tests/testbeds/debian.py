"""Make a Debian image with debootstrap, for tests of images that users have; no registry is reachable.

It is made once, from the mirror that this machine's apt uses, and kept in the test cache.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

_OPTIONS: Final = ("--variant=minbase",)
_LEFT_OUT: Final = ("dev", "var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale", "usr/share/man")
"""Large folders that no program needs; a container gets its own /dev."""
_SECONDS: Final = 900


def missing() -> str:
    """The missing tools, "" when all are installed."""
    if shutil.which("debootstrap", path=_path()) is None:
        return "the Debian package debootstrap is not installed"
    return "" if os.geteuid() == 0 else "debootstrap needs root"


def debian_tree(root: Path) -> Path:
    """Fill `root` with this machine's release of Debian, only the packages that apt needs."""
    root.mkdir(parents=True, exist_ok=True)
    subprocess.run(["tar", "--numeric-owner", "-xpf", str(_archive()), "-C", str(root)], check=True)
    return root


def _archive() -> Path:
    """The tree as an archive, complete or missing."""
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    cache = Path(os.environ.get("CORRAL_CACHE") or Path.home() / ".cache" / "corral") / "debian"
    archive = cache / f"{release}-{hashlib.sha256(repr((_OPTIONS, _LEFT_OUT)).encode()).hexdigest()[:16]}.tar"
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / f"{release}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            with tempfile.TemporaryDirectory(prefix=f".{release}-", dir=cache) as scratch:
                tree, packed = Path(scratch) / "tree", Path(scratch) / "tree.tar"
                run("debootstrap", *_OPTIONS, release, str(tree), mirror_of(release))
                for name in _LEFT_OUT:
                    shutil.rmtree(tree / name)
                    (tree / name).mkdir()
                run("tar", "--numeric-owner", "-C", str(tree), "-cf", str(packed), ".")
                packed.rename(archive)
    return archive


def mirror_of(release: str) -> str:
    """The mirror from which this machine's apt gets the release."""
    words = ["apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)", "Created-By: Packages"]
    for line in subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines():
        if line.startswith(f"{release} main "):
            return line.split()[2]
    raise RuntimeError(f"this machine's apt has no source of {release} main")


def run(*words: str) -> None:
    """Run a program that may be one of root's. Raises RuntimeError with its last output."""
    env = os.environ | {"PATH": _path()}
    done = subprocess.run(
        words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=_SECONDS, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout[-4000:]}")


def _path() -> str:
    """The folders of programs, including root's."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
