"""Keep the journal of a leading control: write each step before it is stored, and pack and tidy files beside the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import structlog

from corral.control.core import Batch, Core, Input, Machines, Recovered
from corral.control.journal.folder import JournalFolder
from corral.control.journal.rules import Rules
from corral.control.journal.writer import JournalWriter
from corral.kernel.clock import Clock
from corral.kernel.errors import InvalidInput
from corral.launcher import LaunchPolicy

log = structlog.get_logger()

_SYNC_SECONDS: Final = 1.0
"""Seconds between two syncs to the disk: what a power cut may lose."""
_TIDY_SECONDS: Final = 60.0
"""Seconds after which the folder's bounds are looked at even when nothing was written."""
_SILENT_SECONDS: Final = 60.0
"""Seconds after which a step is written though nothing happened: readers of the journal learn up to when."""
_BEGIN_SECONDS: Final = 86_400.0
"""Seconds after which a core is built anew, so that a replay can begin there."""
_BEGIN_BYTES: Final = 256 << 20
"""Bytes of records, before they are packed, after which one is built anew too."""


class JournalKeeper:
    """Steps cores and writes their journal; control goes on without one when the disk is full or fails."""

    def __init__(self, folder: JournalFolder, rules: Rules, version: str, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._writer = JournalWriter(self, rules, version)
        self._begun_at = self._stepped_at = 0.0
        self._broken = False
        """Whether records are dropped until a core begins again."""

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self._folder.folder

    @property
    def must_begin(self) -> bool:
        """Whether a core should be built anew, so that a replay may begin there; once a day, and after many records."""
        seconds = self._clock.now() - self._begun_at
        return seconds > _BEGIN_SECONDS or (self._folder.written > _BEGIN_BYTES and not self._broken)

    @property
    def is_silent(self) -> bool:
        """Whether no step was written for so long that one is due though nothing happened."""
        return self._clock.now() - self._stepped_at >= _SILENT_SECONDS

    def begin(self, recovered: Recovered, launch: LaunchPolicy, machines: Machines, now: float) -> None:
        """Write how a core begins; to be called before it takes `machines` over."""
        self._folder.begin_file()
        self._broken, self._begun_at = False, now
        self._writer.begin(recovered, launch, machines, now)
        self._folder.written = 0

    def step(self, core: Core, inputs: Sequence[Input], now: float) -> Batch:
        """Step a core and write the step."""
        self._stepped_at = now
        return core.step(inputs, now) if self._broken else self._writer.step(core, inputs, now)

    def add(self, record: bytes) -> None:
        """Hand a record to the system."""
        if self._broken:
            return
        try:
            self._folder.add(record, self._clock.now())
        except (OSError, InvalidInput) as error:
            self._broken = True
            log.error(
                "the journal cannot be written; decisions go on, and it begins again within a day", error=str(error)
            )

    async def run(self) -> None:
        """Sync, pack and tidy until cancelled."""
        tidied = -_TIDY_SECONDS
        while True:
            await asyncio.sleep(_SYNC_SECONDS)
            now = self._clock.now()
            if self._folder.is_idle and abs(now - tidied) < _TIDY_SECONDS:
                continue
            try:
                await asyncio.to_thread(self._care, now)
                tidied = now
            except OSError as error:
                log.warning("the files of the journal cannot be packed", error=str(error))

    def _care(self, now: float) -> None:
        self._folder.sync()
        self._folder.pack()
        self._folder.tidy(now)
