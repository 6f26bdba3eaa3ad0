"""The profiles that were taken on this computer: a folder for each, readable by its user alone, with a quota and an age.

A profile can hold names, paths and values of a program, so it stays with the person who took it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from corral.kernel.errors import InvalidInput, NotFound

QUOTA: Final = 1024**3
"""Bytes of all kept profiles; the oldest are removed beyond."""
MOST_DAYS: Final = 30
_FACTS: Final = "profile.json"
_MOST_FACTS: Final = 4 * 1024**2
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,120}")


def profiles_folder() -> Path:
    """`$XDG_DATA_HOME/corral-profiles`, else `~/.local/share/corral-profiles`."""
    named = os.environ.get("XDG_DATA_HOME", "")
    base = Path(named) if os.path.isabs(named) else Path.home() / ".local" / "share"
    return base / "corral-profiles"


def keep(job: str, facts: Mapping[str, Any], files: Mapping[str, str | bytes]) -> dict[str, Any]:
    """Keep a profile, and return its facts with its `name`; then older ones that are beyond quota or age go."""
    now = datetime.now(UTC)
    base = re.sub(r"[^a-z0-9.-]+", "-", job.lower()).strip("-.")[:60] or "job"
    name = f"{base}-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    whole = {"name": name, "taken": now.isoformat(timespec="seconds"), **facts, "files": sorted(files)}
    folder = profiles_folder() / name
    try:
        os.makedirs(profiles_folder(), mode=0o700, exist_ok=True)
        os.mkdir(folder, 0o700)
        for file, content in {**files, _FACTS: json.dumps(whole)}.items():
            (folder / file).write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        message = f"The profile cannot be kept in {folder}: {error.strerror}."
        raise InvalidInput("profile-not-kept", message) from None
    _clear(now, name)
    return whole


def kept() -> list[dict[str, Any]]:
    """The facts of all kept profiles, newest first; a folder that is none is left out."""
    found = []
    with contextlib.suppress(OSError):
        for folder in profiles_folder().iterdir():
            with contextlib.suppress(NotFound):
                found.append(facts_of(folder.name))
    return sorted(found, key=lambda each: str(each["taken"]), reverse=True)


def facts_of(name: str) -> dict[str, Any]:
    """The facts of a kept profile. Raises NotFound `no-such-profile`."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        if _NAME.fullmatch(name):
            with open(profiles_folder() / name / _FACTS, encoding="utf-8") as file:
                found = json.loads(file.read(_MOST_FACTS))
            if isinstance(found, dict) and found.get("name") == name:
                return found
    raise NotFound("no-such-profile", f"There is no profile {name[:100]!r} here; `corral profile list` names them.")


def path_of(name: str, file: str) -> Path:
    """The path of one file of a kept profile."""
    return profiles_folder() / name / file


def forget(name: str) -> None:
    """Remove a kept profile. Raises NotFound `no-such-profile`."""
    facts_of(name)
    shutil.rmtree(profiles_folder() / name)


def size_of(name: str) -> int:
    """Bytes of a kept profile."""
    with contextlib.suppress(OSError):
        return sum(file.stat().st_size for file in (profiles_folder() / name).iterdir())
    return 0


def _clear(now: datetime, newest: str) -> None:
    """Remove what is too old, and the oldest beyond the quota; the newest stays."""
    room = QUOTA
    for each in kept():
        room -= size_of(each["name"])
        age = now - datetime.fromisoformat(each["taken"])
        if each["name"] != newest and (age.days >= MOST_DAYS or room < 0):
            shutil.rmtree(profiles_folder() / each["name"], ignore_errors=True)
