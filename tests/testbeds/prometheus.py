"""Debian's Prometheus, promtool, Alertmanager and node exporter, unpacked once into the test cache and not installed."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

_SECONDS: Final = 300
_PACKAGES: Final = {
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "prometheus-alertmanager": "prometheus-alertmanager",
    "prometheus-node-exporter": "prometheus-node-exporter",
}
"""The package of each program."""
_TEMPLATES: Final = b"/usr/share/prometheus/alertmanager"
"""Where Debian's Alertmanager has its templates, and starts only with them."""
TEMPLATES: Final = "templates"
"""Where the one of the cache looks for them, in the folder that it is started in; `templates()` has them."""


def missing() -> str:
    """Why the programs cannot be had, "" if they can."""
    if _found() or all(map(shutil.which, ("apt-get", "dpkg-deb"))):
        return ""
    return "only Debian's apt-get brings Prometheus"


def program(name: str) -> Path:
    """The path of one of the programs; its package is fetched at the first call on a machine.

    Raises RuntimeError with apt's complaint when it cannot be fetched.
    """
    cache = _cache()
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (cache / name).is_file():
            with tempfile.TemporaryDirectory(prefix=".new-", dir=cache) as scratch:
                _fetch(Path(scratch), _PACKAGES[name])
    return cache / name


def templates() -> Path:
    """The folder of Alertmanager's own templates, which its program brings."""
    return _cache() / "alertmanager-templates"


def _fetch(scratch: Path, package: str) -> None:
    for refresh in (False, True):
        if refresh:
            _run(scratch, "apt-get", "update", "-qq")
        try:
            _run(scratch, "apt-get", "download", "-qq", package)
            break
        except RuntimeError:
            if refresh:
                raise
    (archive,) = scratch.glob("*.deb")
    _run(scratch, "dpkg-deb", "-x", str(archive), "tree")
    if package == "prometheus-alertmanager":
        _take_templates(scratch / "tree")
    for name in (each for each, of in _PACKAGES.items() if of == package):
        (scratch / "tree/usr/bin" / name).rename(_cache() / name)


def _take_templates(tree: Path) -> None:
    """Have the unpacked Alertmanager read its templates from a relative path of the same length."""
    program = tree / "usr/bin/prometheus-alertmanager"
    content, here = program.read_bytes(), TEMPLATES.encode().ljust(len(_TEMPLATES), b"/")
    if _TEMPLATES not in content:
        raise RuntimeError(f"Alertmanager has no templates at {_TEMPLATES.decode()}")
    program.write_bytes(content.replace(_TEMPLATES, here))
    shutil.rmtree(templates(), ignore_errors=True)
    (tree / _TEMPLATES.decode().lstrip("/")).rename(templates())


def _run(folder: Path, *words: str) -> None:
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        words,
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout[-2000:]}")


def _found() -> bool:
    return all((_cache() / name).is_file() for name in _PACKAGES)


def _cache() -> Path:
    return Path(os.environ.get("CORRAL_CACHE") or Path.home() / ".cache" / "corral") / "prometheus"


if __name__ == "__main__":
    if not missing():
        for each in _PACKAGES:
            program(each)
