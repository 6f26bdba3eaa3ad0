"""Find containers of a killed server whose attempt has neither a folder nor a client process any more.

A label of each container names the folder of its engine's attempts, so that containers of another server on the machine
are left alone. The runtime is asked once, and only if the engine has ever started a container.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Final

from corral.engines.local.attempt_folder import AttemptFolder, EndRecord, LaunchRecord
from corral.engines.local.containers import LABEL, RUNTIMES, answer_of, container_name
from corral.engines.local.live_attempt import FOLDER_GONE, LiveAttempt
from corral.kernel.errors import Unavailable
from corral.kernel.ids import AttemptId, parse_attempt_id
from corral.model.exits import EXTERNALLY_DELETED

_log = logging.getLogger(__name__)
_ANSWER_SECONDS: Final = 30.0
_AGAIN_SECONDS: Final = 5.0
"""Seconds until the next try after a runtime did not answer."""


class OrphanContainers:
    """The containers of earlier servers that have no other record. `root` is the engine's folder."""

    def __init__(self, root: Path, attempts: str) -> None:
        self._attempts = attempts
        self._used = root / "containers"
        """An empty file that exists from the first container on."""
        self._found = asyncio.Event()
        self._one = asyncio.Lock()

    def use(self) -> None:
        """Record that a container is about to start. Raises OSError."""
        self._used.touch(mode=0o600)

    async def find(self, known: Collection[AttemptId]) -> list[LiveAttempt]:
        """Return the lost attempts, on the first answered call only. `known` have a folder or processes.

        Raises Unavailable when an installed runtime does not answer.
        """
        async with self._one:
            if self._found.is_set() or not self._used.exists():
                self._found.set()
                return []
            programs = [program for name in RUNTIMES if (program := shutil.which(name))]
            found = {attempt: program for program in programs for attempt in await self._attempts_of(program)}
            self._found.set()
        return [self._lost(attempt, program) for attempt, program in found.items() if attempt not in known]

    async def find_some_time(self, known: Collection[AttemptId]) -> list[LiveAttempt]:
        """Do the same as `find`, repeated until it is answered."""
        while True:
            try:
                return await self.find(known)
            except Unavailable as error:
                _log.warning("Containers of the server before are looked for again soon: %s", error.message)
                await asyncio.sleep(_AGAIN_SECONDS)

    def _lost(self, attempt: AttemptId, program: str) -> LiveAttempt:
        record = LaunchRecord("", container=container_name(attempt), container_runtime=program)
        end = EndRecord(EXTERNALLY_DELETED, FOLDER_GONE)
        return LiveAttempt(attempt, AttemptFolder(self._attempts, attempt), record, end=end)

    async def _attempts_of(self, program: str) -> list[AttemptId]:
        words = ("ps", "--all", f"--filter=label={LABEL}={self._attempts}", "--format={{.Names}}")
        said = await answer_of(program, *words, seconds=_ANSWER_SECONDS)
        if said is None:
            name = os.path.basename(program)
            why = f"{name} does not say which containers there are; see whether its service runs."
            raise Unavailable("no-container-runtime", why, retry_after=_AGAIN_SECONDS)
        return [attempt for line in said.decode().split() if (attempt := _attempt_in(line)) is not None]


def _attempt_in(name: str) -> AttemptId | None:
    """Return the attempt whose container has this name, or None."""
    attempt = AttemptId(name.removeprefix(container_name(AttemptId(""))))
    try:
        parse_attempt_id(attempt)
    except ValueError:
        return None
    return attempt
