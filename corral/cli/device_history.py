"""How many devices were in use lately, as a line of bars for `corral top`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from corral.cli.sparkline import sparkline
from corral.kernel.errors import CorralError

if TYPE_CHECKING:
    from corral.client import Client
    from corral.client.schema import SeriesView

_FAMILY: Final = "corral_devices"
_WIDTH: Final = 30
_PAST: Final = timedelta(minutes=30)
_STEP: Final = "60s"
_ASK_AGAIN: Final = 30.0
"""Seconds for which a line is shown again: a step of it is longer."""


class DeviceHistory:
    """Asks the server for its series now and then."""

    def __init__(self, client: Client, steady: Callable[[], float] = time.monotonic) -> None:
        """`steady` is a clock in seconds that is never set."""
        self._client, self._steady = client, steady
        self._line, self._until = "", 0.0

    def line(self) -> str:
        """The devices in use over the last half hour, between none and all; "" where the server does not tell."""
        now = self._steady()
        if not self._until or now >= self._until:
            self._until = now + _ASK_AGAIN
            self._line = self._asked()
        return self._line

    def _asked(self) -> str:
        begin = (datetime.now(UTC) - _PAST).isoformat()
        try:
            items = self._client.series([_FAMILY], begin=begin, step=_STEP)["items"]
        except CorralError:  # it keeps no series, or tells this user none
            return ""
        used = summed([each for each in items if each["labels"].get("state") == "used"])
        known = [each for each in summed(items) if each is not None]
        return sparkline(used, _WIDTH, (0.0, max(known))) if known and max(known) > 0 else ""


def summed(series: Sequence[SeriesView]) -> list[float | None]:
    """Return the sums of series by step; None is a step without any value."""
    columns = zip(*(each["mean"] for each in series), strict=True)
    values = ([value for value in column if value is not None] for column in columns)
    return [sum(each) if each else None for each in values]
