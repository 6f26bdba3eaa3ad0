"""Configure logging: JSON lines with job, attempt and cycle ids, and with secrets masked."""

from __future__ import annotations

import json
import logging
import sys
from typing import TextIO, cast

sys.modules.setdefault("rich", None)  # type: ignore[arg-type]  # structlog would import it for consoles: 7 MB, 80 ms

import structlog  # noqa: E402  # must follow the line above

_HIDDEN = frozenset({"token", "password", "secret", "authorization", "job_token", "link"})


def configure(level: str) -> None:
    """Log JSON lines of `level` and above to standard error."""
    number = logging.getLevelNamesMapping().get(level.upper(), logging.INFO)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _hide,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=cast(TextIO, Unbreakable(sys.stderr))),
        cache_logger_on_first_use=True,
    )


class Unbreakable:
    """A log file that drops lines while its disk is full instead of failing the writer, and later records how many."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._lost = 0

    def write(self, line: str) -> None:
        """Write a line, preceded by a line on how many were dropped."""
        try:
            if self._lost:
                words = f"up to {self._lost} lines of this log could not be written"
                self._file.write(json.dumps({"event": words, "level": "warning"}) + "\n")
            self._file.write(line)
            self._file.flush()
        except OSError:
            self._lost += 1
        else:
            self._lost = 0

    def flush(self) -> None:
        """Do nothing, since every line is flushed when it is written."""


def _hide(_: object, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    for name in _HIDDEN & event.keys():
        event[name] = "***"
    return event
