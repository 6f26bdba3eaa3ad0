"""The exit codes of `corral`: six, each with one meaning, so that scripts can branch on them."""

from __future__ import annotations

from typing import Final

from corral.kernel.errors import (
    Conflict,
    CorralError,
    Forbidden,
    InvalidInput,
    NotFound,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)

OK: Final = 0
"""Done; the job that was followed succeeded."""
JOB_FAILED: Final = 1
"""The job failed or was stopped; or Corral itself failed."""
USAGE: Final = 2
"""The command line, or a document, is not valid."""
NOT_FOUND: Final = 3
"""There is no such job, node, user or token."""
REFUSED: Final = 4
"""Not signed in, not allowed, or not possible in this state."""
UNREACHABLE: Final = 5
"""The server is unreachable."""
INTERRUPTED: Final = 130
"""Ctrl-C ended it: 128 and the signal's number, as shells have it."""

_CODES: Final[tuple[tuple[type[CorralError], int], ...]] = (
    (InvalidInput, USAGE),
    (TooLarge, USAGE),
    (NotFound, NOT_FOUND),
    (Unauthenticated, REFUSED),
    (Forbidden, REFUSED),
    (Conflict, REFUSED),
    (TooManyRequests, REFUSED),
    (Unavailable, UNREACHABLE),
)


def exit_code(error: CorralError) -> int:
    """Return the exit code for an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), JOB_FAILED)
