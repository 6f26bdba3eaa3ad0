"""Why: every process logs the same way — one JSON line with job, attempt and cycle ids — and never a secret."""

from __future__ import annotations

import logging
import sys

sys.modules.setdefault("rich", None)  # type: ignore[arg-type]  # structlog would load it for consoles: 7 MB, 80 ms

import structlog  # noqa: E402  # after the line above, which is about it

_HIDDEN = frozenset({"token", "password", "secret", "authorization", "job_token", "link"})


def configure(level: str) -> None:
    """Log JSON lines to standard error from `level` on."""
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
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )


def _hide(_: object, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    for name in _HIDDEN & event.keys():
        event[name] = "***"
    return event
