"""Collect in rounds, in a thread, so that a collector takes half a percent of a core at most."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from typing import Final

from corral.kernel.errors import InvalidInput
from corral.model.metrics.samples import Samples
from corral.monitor.agent.collector import PARTS, Collector, NameTask

_log = logging.getLogger(__name__)
SHARE: Final = 0.005
"""The part of a core that rounds may take: the pause after one is longer where it cost more."""
_KEPT_ROUNDS: Final = 3.0
"""Rounds after which samples are no longer told: a series whose collector is silent ends, and is no flat line."""
_KEPT_AT_LEAST: Final = 60.0
"""Seconds for which samples are told at least."""


class Rounds:
    """Calls a collector again and again, and keeps its last samples."""

    def __init__(self, collector: Collector, name_task: NameTask, seconds: float) -> None:
        """`name_task` is called in the collector's thread; `seconds` are those between two rounds."""
        self._collector, self._name_task, self._seconds = collector, name_task, seconds
        self._samples = Samples()
        self._until = 0.0
        self.pause = seconds
        """Seconds between the last round and the next."""

    def samples(self) -> Samples:
        """The last samples; none once they are too old."""
        return self._samples if time.monotonic() < self._until else Samples()

    async def run(self) -> None:
        """Collect until cancelled. No failure ends it."""
        try:
            while True:
                await self.collect()
                await asyncio.sleep(self.pause)
        finally:
            self._collector.close()

    async def collect(self) -> None:
        """Collect once."""
        try:
            samples, cost = await asyncio.to_thread(self._collected)
        except Exception:
            _log.exception("this machine could not be measured; that is tried again")
            return
        self.pause = max(self._seconds, cost / SHARE)
        self._samples = samples
        self._until = time.monotonic() + max(_KEPT_AT_LEAST, _KEPT_ROUNDS * self.pause)

    def _collected(self) -> tuple[Samples, float]:
        begun = time.thread_time()
        samples = self._collector.collect(self._name_task)
        return samples, time.thread_time() - begun


def parts_of(text: str) -> tuple[str, ...]:
    """Return the parts that a list separated by commas names.

    Raises InvalidInput for an unknown one.
    """
    return _known(word.strip() for word in text.split(",") if word.strip())


def _known(words: Iterable[str]) -> tuple[str, ...]:
    found = tuple(words)
    for word in found:
        if word not in PARTS:
            known = ", ".join(PARTS)
            raise InvalidInput("unknown-metrics-part", f"There is no part {word[:50]!r} to measure: {known} are known.")
    return found
