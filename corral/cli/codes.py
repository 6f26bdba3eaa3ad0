"""Why: scripts branch on exit codes, so there are six and each has one meaning."""

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
"""Done; of a job that was followed: it succeeded."""
JOB_FAILED: Final = 1
"""The job failed or was stopped; or a fault of Corral's own."""
USAGE: Final = 2
"""The command line, or a document, cannot be accepted."""
NOT_FOUND: Final = 3
"""There is no such job, node, user or token."""
REFUSED: Final = 4
"""Not signed in, not allowed, or not in this state."""
UNREACHABLE: Final = 5
"""No server answers."""

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
    """The exit code that tells of an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), JOB_FAILED)
