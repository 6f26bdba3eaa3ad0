"""Which refusals of a server pass by themselves, and how long a client waits before it sends a call again.

A server that starts, or whose database does not answer for a moment, refuses with 503 and says that it did nothing. A
restart takes two to five seconds, a write behind a stalled disk up to five.
"""

from __future__ import annotations

from typing import Any, Final

from corral.client.calls import Call
from corral.kernel.errors import CorralError, Unavailable

PATIENCE: Final = 20.0
"""Seconds for which a client sends a call again by default."""
KEPT_SECONDS: Final = 2.0
"""Seconds for which an idle connection is used again, well within the five after which the server closes it.

A request that crosses the server's end of the connection fails, and most may not be sent twice.
"""
_SHORTEST: Final = 0.05
"""Least seconds between two calls, whatever the server suggests."""
_REPEATABLE: Final = frozenset({"GET", "HEAD", "PUT", "DELETE"})
_NOTHING_BEGUN: Final = frozenset({"control-starting"})
"""Refusals before anything of the call was done, so that any call may be sent again."""
_PASSING: Final = frozenset({"store-locked", "store-unreachable", "store-busy", "no-control"})
"""Refusals in the middle of a call, of which a part may be done."""


def repeatable(call: Call[Any]) -> bool:
    """Return whether a call takes effect once however often it is sent: by its method, or by its idempotency key."""
    return call.method in _REPEATABLE or "idempotency-key" in call.headers


def passes_by_itself(error: CorralError) -> bool:
    """Return whether the same call may succeed later although nothing is changed."""
    return isinstance(error, Unavailable) and error.code in _NOTHING_BEGUN | _PASSING | {"unreachable"}


def pause_before_retry(call: Call[Any], refused: Unavailable, left: float) -> float | None:
    """Return the seconds to wait before `call` is sent again, None when it is not.

    `left` are the seconds of patience that are left; the server's own suggestion is kept within them, and is no less than
    a twentieth of a second.
    """
    again = refused.code in _NOTHING_BEGUN or (refused.code in _PASSING and repeatable(call))
    return min(max(refused.retry_after, _SHORTEST), left) if again and left > 0 else None
