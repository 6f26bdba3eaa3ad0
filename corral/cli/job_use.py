"""What running jobs use, for `corral top`: of their devices, or of processors where their devices tell nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from corral.cli.device_history import summed
from corral.cli.sparkline import sparkline
from corral.kernel.errors import CorralError

if TYPE_CHECKING:
    from corral.client import Client

MOST_ASKED: Final = 20
"""Jobs whose figures are asked for; of those below them in the list nothing is shown."""
_DEVICES: Final = "task_gpu_percent"
_PROCESSORS: Final = "task_cpu_percent"
LINE_WIDTH: Final = 10
PAST: Final = timedelta(minutes=10)
STEP: Final = "60s"
ASK_AGAIN: Final = 30.0
"""Seconds for which figures are shown again."""


class Use(NamedTuple):
    """The use by one job over the last minutes."""

    percent: float
    """The last mean of its tasks, of a whole device or of one processor."""
    line: str
    of_devices: bool

    def __str__(self) -> str:
        return f"{self.percent:.0f}%{'' if self.of_devices else ' cpu'} {self.line}"


class JobUse:
    """Asks the server for the figures of jobs now and then."""

    def __init__(self, client: Client, steady: Callable[[], float] = time.monotonic) -> None:
        """`steady` is a clock in seconds that is never set."""
        self._client, self._steady = client, steady
        self._known: dict[str, tuple[float, Use | None]] = {}

    def of(self, jobs: Iterable[str]) -> dict[str, Use]:
        """What is known of these jobs, by id; the figures of the first `MOST_ASKED` are asked for."""
        now = self._steady()
        asked = list(jobs)[:MOST_ASKED]
        self._known = {
            job: known if (known := self._known.get(job)) and now < known[0] else (now + ASK_AGAIN, self._asked(job))
            for job in asked
        }
        return {job: use for job, (_, use) in self._known.items() if use is not None}

    def _asked(self, job: str) -> Use | None:
        begin = (datetime.now(UTC) - PAST).isoformat()
        try:
            items = self._client.series([_DEVICES, _PROCESSORS], job=job, begin=begin, step=STEP)["items"]
        except CorralError:  # the server keeps no series, or the job is gone
            return None
        for family in (_DEVICES, _PROCESSORS):
            found = [each for each in items if each["family"] == family]
            values = [None if each is None else each / len(found) for each in summed(found)]
            known = [each for each in values if each is not None]
            if known:
                return Use(known[-1], sparkline(values, LINE_WIDTH, (0.0, max(100.0, *known))), family == _DEVICES)
        return None


def by_user(jobs: Sequence[Mapping[str, Any]], uses: Mapping[str, Use]) -> list[tuple[object, ...]]:
    """Rows of users: their jobs, the devices that these hold, and the mean use of devices that is known of them."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for job in jobs:
        found.setdefault(job["user"], []).append(job)
    rows: list[tuple[object, ...]] = []
    for user, own in sorted(found.items(), key=lambda each: (-sum(map(_held, each[1])), each[0])):
        known = [
            (_held(job), uses[job["id"]].percent) for job in own if job["id"] in uses and uses[job["id"]].of_devices
        ]
        devices = sum(held for held, _ in known)
        use = f"{sum(held * percent for held, percent in known) / devices:.0f}%" if devices else ""
        rows.append((user, len(own), sum(map(_held, own)), use))
    return rows


def _held(job: Mapping[str, Any]) -> int:
    return int(job.get("devicesHeld", 0) or job["devices"] or 0)
