"""Settings of the kernel that hosts share with this machine and that kubelets write: kept before, and put back after."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_SETTINGS: Final = (
    "vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)  # fmt: skip
_AT_LEAST: Final = {"fs/inotify/max_user_instances": 1024}
"""Of three nodes' kubelets and containerds 72 are in use: with two clusters at once containerd would have no CRI."""
_FILE: Final = "settings.json"
_PROC: Final = Path("/proc/sys")


def remember(home: Path, prefix: str) -> None:
    """Keep the settings in the folder of these hosts: those of now, or those that hosts of another run found.

    Then raise those that are too low for several clusters at once.
    """
    found = {name: _value(name) for name in (*_SETTINGS, *_AT_LEAST)} | next(_elsewhere(home, prefix), {})
    (home / _FILE).write_text(json.dumps(found))
    for name, least in _AT_LEAST.items():
        if int(_value(name)) < least:
            (_PROC / name).write_text(str(least))


def restore(home: Path, prefix: str) -> None:
    """Put back what was found before the first hosts, once these are the last; kubelets of others would mind."""
    if not (home / _FILE).exists() or next(_elsewhere(home, prefix), None) is not None:
        return
    for name, value in json.loads((home / _FILE).read_text()).items():
        if value != _value(name):
            (_PROC / name).write_text(value)


def _elsewhere(home: Path, prefix: str) -> Iterator[dict[str, str]]:
    """What hosts of other runs found."""
    for file in Path(tempfile.gettempdir()).glob(f"{prefix}*/{_FILE}"):
        if file.parent != home:
            try:
                yield json.loads(file.read_text())
            except (OSError, ValueError):  # being written, or removed
                continue


def _value(name: str) -> str:
    return (_PROC / name).read_text().strip()
