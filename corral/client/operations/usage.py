"""The report on who used how much."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corral.client.calls import Call, call

if TYPE_CHECKING:
    from corral.client.schema import UsageReport


def usage(*, by: str = "user", begin: str = "", end: str = "", user: str = "", queue: str = "") -> Call[UsageReport]:
    """Return the device-seconds used from `begin` to `end`, by `user`, `queue`, `job`, `tag`, `node` or `model`."""
    return call("GET", "/usage", {"by": by, "from": begin, "to": end, "user": user, "queue": queue})
