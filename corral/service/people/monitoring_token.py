"""The token of monitoring: a Prometheus reads the page of metrics with it, and its Alertmanager tells alerts."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from corral.kernel.clock import Clock
from corral.service.actor import MONITORING, Actor

log = structlog.get_logger()

_ACTOR: Final = Actor("(monitoring)", kind=MONITORING)
"""No account can have this name."""
_EVERY: Final = 5.0
"""Seconds after which the file is read again: a Secret of Kubernetes may be given another token."""
_LEAST, _MOST = 16, 1000
_TOKEN: Final = re.compile(rf"[!-~]{{{_LEAST},{_MOST}}}")


class MonitoringToken:
    """The token that a file has, as long as it has one."""

    def __init__(self, path: Path, clock: Clock, of_another: Callable[[str], bool]) -> None:
        """`of_another` tells texts of the form of other tokens, which are never compared with this one."""
        self._path, self._clock, self._of_another = path, clock, of_another
        self._token, self._read_at, self._failing = "", -_EVERY, False

    def actor_of(self, token: str) -> Actor | None:
        """The actor of this token; None where it is another one."""
        now = self._clock.now()
        if not 0 <= now - self._read_at < _EVERY:
            self.read()
        if not self._token or not hmac.compare_digest(token.encode(), self._token.encode()):
            return None
        return _ACTOR

    def read(self) -> None:
        """Read the file now."""
        self._token, self._read_at = self._read(), self._clock.now()

    def _read(self) -> str:
        """The token of the file; "" where it has none, which is logged once."""
        try:
            with self._path.open("rb") as file:
                text = file.read(_MOST + 2).decode("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            return self._refused(str(error))
        if not _TOKEN.fullmatch(text):
            return self._refused(f"it has no word of {_LEAST} to {_MOST} characters")
        if self._of_another(text):
            return self._refused("it has the form of a token of a user or a job")
        self._failing = False
        return text

    def _refused(self, why: str) -> str:
        if not self._failing:
            log.warning("the file of the monitoring token has none", error=why)
        self._failing = True
        return ""
