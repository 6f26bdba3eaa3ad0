"""The report on who used how much."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corral.client.calls import Call, call

if TYPE_CHECKING:
    from corral.client.schema import ChargePage, UsageReport


def usage(*, by: str = "user", begin: str = "", end: str = "", user: str = "", queue: str = "") -> Call[UsageReport]:
    """Return the device-seconds used from `begin` to `end`, by `user`, `queue`, `job`, `tag`, `node` or `model`."""
    return call("GET", "/usage", {"by": by, "from": begin, "to": end, "user": user, "queue": queue})


def charges(*, begin: str = "", end: str = "", user: str = "", queue: str = "") -> Call[ChargePage]:
    """Return what users used by day, queue, device model and meter, with its cost; go on with `next` as `begin`."""
    return call("GET", "/usage/charges", {"from": begin, "to": end, "user": user, "queue": queue})
