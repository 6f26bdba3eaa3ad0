"""Keep what a task compiles for later tasks: restore a bundle before the command, and publish one after its success.

Nothing here may fail a task. Whatever goes wrong is one line in its log, and the command compiles as without a cache.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import urlencode

from corral.runtime.cache_bundle import Packed, Seen, TooLarge, copy_checked, files_in, pack, restore
from corral.runtime.cache_facts import facts_of
from corral.runtime.peers import Refused
from corral.runtime.unpack import UnsafeArchive

if TYPE_CHECKING:
    from corral.runtime.peers import Api
    from corral.runtime.plan import Plan

VARIABLES = {
    "TORCHINDUCTOR_CACHE_DIR": "torchinductor",
    "TRITON_CACHE_DIR": "triton",
    "JAX_COMPILATION_CACHE_DIR": "jax",
    "VLLM_CACHE_ROOT": "vllm",
    "CCACHE_DIR": "ccache",
}
"""The variables by which compilers find their folders, and the name of each in the cache."""
_ASIDE = {"JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES": "none"}
"""JAX makes the path of its folder a part of each key, unless XLA's own caches are off: nothing would ever be found."""
MOVE_SECONDS = 120.0
"""The longest that a task waits for its bundle to come, and at its end for it to go."""
_FOLDER = ".corral-cache"
_PATH = "/api/v3/runtime/cache"
_CHUNK = 1 << 20


class CompileCache:
    """The cache of one task attempt: `restore` before its command, `begin` at its start and `finish` after it."""

    def __init__(self, plan: Plan, api: Api, clock: Callable[[], float] = time.monotonic) -> None:
        self._given: Mapping[str, Any] = plan.compile_cache or {}
        self._plan, self._api, self._clock = plan, api, clock
        self.folder = os.path.join(self._given.get("folder") or plan.work, _FOLDER)
        self._facts: dict[str, str] = {}
        self._restored: dict[str, Seen] | None = None
        """The files of the bundle; None without a cache."""
        self._found: Mapping[str, Any] = {}
        """The server's answer."""
        self._use: dict[str, Any] = {}
        self._begun: float | None = None

    def restore(self, env: Mapping[str, str]) -> dict[str, str]:
        """Make the folder, fill it with the bundle for this task if there is one; the variables that name it.

        A variable that the job sets itself is left alone.
        """
        seen = not (self._plan.entry_file or self._plan.shared)
        self._facts = facts_of(self._given, self._plan.command, env, image_seen=seen)
        started = self._clock()
        try:
            self._found = self._ask()
            if why := self._found.get("refusal", ""):
                _say(f"nothing is kept of what is compiled: {why}")
                return {}
            shutil.rmtree(self.folder, ignore_errors=True)
            os.makedirs(self.folder)
            self._restored = self._take() if self._found.get("digest") else {}
        except (Refused, OSError) as error:
            _say(f"nothing is kept of what is compiled: {_cause(error)}")
            return {}
        if self._restored:
            self._use |= {"restoreSeconds": self._clock() - started, "files": len(self._restored)}
        self._tell()
        folders = {name: os.path.join(self.folder, inside) for name, inside in VARIABLES.items()}
        return {name: value for name, value in (folders | _ASIDE).items() if name not in env}

    def begin(self) -> None:
        """Say that the command starts now."""
        self._begun = self._clock()

    def stepped(self) -> None:
        """Say that the command has reported its first step."""
        if self._begun is not None:
            self._use.setdefault("firstStepSeconds", self._clock() - self._begun)

    def finish(self, *, succeeded: bool) -> None:
        """Publish what was compiled, if the command succeeded, and remove the folder."""
        if self._restored is None:
            return
        try:
            now = files_in(self.folder)
            new = [path for path, seen in now.items() if self._restored.get(path) != seen]
            self._use["newFiles"] = len(new)
            if succeeded and new:
                self._publish(now)
            self._tell()
        except (Refused, OSError, TooLarge) as error:
            _say(f"what was compiled is not kept: {_cause(error)}")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _ask(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._api.call("POST", _PATH, {"attempt": self._plan.attempt, "facts": self._facts})
        return found

    def _take(self) -> dict[str, Seen]:
        """Download, check and unpack the bundle; its files, none if it cannot be used."""
        digest, deadline = str(self._found["digest"]), self._clock() + MOVE_SECONDS
        with _nameless(self.folder) as file:
            chunks = self._api.read(f"{_PATH}/{digest}?{urlencode({'attempt': self._plan.attempt})}", _CHUNK)
            try:
                wrong = copy_checked(chunks, file, int(self._found["size"]), digest, lambda: self._clock() < deadline)
            except (Refused, OSError) as error:
                wrong = _cause(error)
            if not wrong:
                file.seek(0)
                try:
                    return restore(file, self.folder)
                except (UnsafeArchive, TooLarge) as error:
                    wrong = str(error)
                    shutil.rmtree(self.folder)
                    os.makedirs(self.folder)
        _say(f"the bundle of compiled code was not taken: {wrong}")
        self._use["refused"] = wrong[:200]
        return {}

    def _publish(self, now: Mapping[str, Seen]) -> None:
        if self._ask().get("digest", "") != self._found.get("digest", ""):
            return  # another task was first
        deadline = self._clock() + MOVE_SECONDS
        with _nameless(os.path.dirname(self.folder)) as file:
            packed = pack(self.folder, now.keys(), file, int(self._found["mostBytes"]))
            file.seek(0)
            self._send(_InTime(file, lambda: self._clock() < deadline), packed)

    def _send(self, file: Any, packed: Packed) -> None:
        asked = {
            "attempt": self._plan.attempt,
            "key": self._found["key"],
            "after": self._found.get("digest", ""),
            "files": packed.files,
        }
        self._api.upload(f"{_PATH}/bundle?{urlencode(asked)}", file, packed.size, packed.digest)

    def _tell(self) -> None:
        """Tell the server what came of the cache; that it does not know costs nothing but a line in the job's page."""
        with suppress(OSError, Refused):
            self._api.call("POST", f"{_PATH}/use", {"attempt": self._plan.attempt, **self._use})


class _InTime:
    """A file that is read only until a deadline."""

    def __init__(self, file: BinaryIO, in_time: Callable[[], bool]) -> None:
        self._file, self._in_time = file, in_time

    def read(self, size: int = -1) -> bytes:
        """Read some bytes; raises OSError after the deadline."""
        if not self._in_time():
            raise OSError(f"the server did not take it in {MOVE_SECONDS:g} s")
        return self._file.read(size)


def _nameless(folder: str) -> BinaryIO:
    return tempfile.TemporaryFile(dir=folder)


def _cause(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _say(what: str) -> None:
    print(f"corral: {what}", file=sys.stderr, flush=True)
