"""What control knows of the server's parts: itself, its engines, and the agents of other machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import corral
from corral.kernel.errors import Unavailable
from corral.model.server_parts import AWAY, DEGRADED, OK, ServerPart


def parts_of(
    *,
    ready: bool,
    troubles: Sequence[str],
    engines: Sequence[str],
    away: Mapping[str, Unavailable],
    agents: Mapping[str, str],
) -> list[ServerPart]:
    """The parts that control sees; `agents` has the trouble of each that is asked, "" where it answers."""
    reasons = tuple(troubles) if ready else ("The scheduler is still starting.", *troubles)
    found = [ServerPart("scheduler", "scheduler", DEGRADED if reasons else OK, corral.__version__, reasons)]
    for name in sorted(engines):
        error = away.get(name)
        found.append(
            ServerPart("engine", name, OK if error is None else AWAY, reasons=() if error is None else (error.message,))
        )
    for name, trouble in sorted(agents.items()):
        found.append(ServerPart("agent", name, AWAY if trouble else OK, reasons=(trouble,) if trouble else ()))
    return found
