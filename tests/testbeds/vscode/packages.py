"""VS Code's open build for browsers, as the lock file pins it, in the test cache: complete or missing.

No script of a package runs at the install, so nothing is fetched from elsewhere. Of the native modules the server starts
with two: `@parcel/watcher` is a package that holds it, and `argon2` is compiled here with the headers of this machine's
Node. The terminal (`node-pty`), the search (ripgrep's program) and the spare log (`spdlog`) are left out.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).resolve().parent
_LOCK: Final = _HERE / "package-lock.json"
_SECONDS: Final = 300
_COMPILED: Final = ("argon2",)
"""The native modules without which the server does not start."""
_NODE: Final = "v20."
"""The release of Node that this release of the editor is for."""


def missing() -> str:
    """Why the editor cannot be had, "" if it can."""
    node = shutil.which("node")
    if node is None or not _told_version(node).startswith(_NODE):
        return f"Node {_NODE.strip('v.')} is not installed"
    if _folder().is_dir():
        return ""
    needs = {"npm": shutil.which("npm"), "g++": shutil.which("g++"), "make": shutil.which("make")}
    absent = [name for name, found in needs.items() if not found]
    if absent:
        return f"{' and '.join(absent)} are not installed" if len(absent) > 1 else f"{absent[0]} is not installed"
    return "" if (_prefix() / "include/node/node_api.h").is_file() else "the headers of Node are not installed"


def program() -> list[str]:
    """The command that starts the editor's server; it is installed if it is missing."""
    kept = _folder()
    if not kept.is_dir():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with open(kept.parent / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not kept.is_dir():
                print("installing the editor (half a minute)", file=sys.stderr, flush=True)
                with tempfile.TemporaryDirectory(prefix=".editor-", dir=kept.parent) as scratch:
                    made = Path(scratch) / "made"
                    _install(made)
                    made.rename(kept)
    return [str(shutil.which("node")), str(kept / "node_modules/code-server/out/node/entry.js")]


def served(folder: str, port: str, *, node: str = "") -> str:
    """The words for a shell that serve a folder of a task at its port with this name.

    `node` is where the task finds Node, if not where it is here.
    """
    here, entry = program()
    given = f"$CORRAL_PORT_{port.upper()}"
    return (
        f"{shlex.join([node or here, entry])} --auth none --disable-telemetry --disable-update-check"
        f" --disable-workspace-trust --user-data-dir $PWD/data --extensions-dir $PWD/extensions --config $PWD/editor.yaml"
        f" --bind-addr 127.0.0.1:{given} --trusted-origins localhost:{given} {folder}"
    )


def main() -> None:
    """Install the editor if the cache lacks it."""
    if reason := missing():
        print(f"{reason}: the test of an editor in a browser will skip", file=sys.stderr)
    else:
        program()


def _install(place: Path) -> None:
    place.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(_HERE / name, place)
    _run(place, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
    _run(place, "rebuild", *_COMPILED)
    packages = place / "node_modules"
    for each in packages.rglob("*.map"):  # a third of its size
        each.unlink()
    # The server's own modules are beside it here: its packages have no lock that npm still reads.
    (packages / "code-server/lib/vscode/node_modules").symlink_to("../../..")


def _run(place: Path, *words: str) -> None:
    env = os.environ | {"npm_config_nodedir": str(_prefix()), "npm_config_build_from_source": "true"}
    done = subprocess.run(
        ["nice", "-n", "15", "npm", *words, "--loglevel=error"],
        cwd=place,
        env=env,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"npm could not install the editor:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def _prefix() -> Path:
    """The folder below which this machine's Node has its headers."""
    return Path(shutil.which("node") or "/usr/bin/node").resolve().parent.parent


def _told_version(node: str) -> str:
    done = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=False)
    return done.stdout.strip()


def _folder() -> Path:
    cache = Path(os.environ.get("CORRAL_CACHE") or Path.home() / ".cache" / "corral")
    wanted = hashlib.sha256(_LOCK.read_bytes()).hexdigest()[:16]
    return cache / "vscode" / f"editor-{wanted}"
