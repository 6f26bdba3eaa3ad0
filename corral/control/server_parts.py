"""What control knows of the server's parts: itself, its engines, and the agents of other machines."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import corral
from corral.engines.base import Engine, Versioned
from corral.kernel.errors import CorralError, Unavailable
from corral.model.server_parts import AWAY, DEGRADED, OK, ServerPart

_DAY: Final = 86400.0
_SOON: Final = 30 * _DAY
"""Seconds before its end at which a certificate is told of, as by `corral deploy certs status`."""
_MOST_SECONDS_OF_VERSION: Final = 1.0
"""Seconds that a cluster has to tell its version; what asks for the parts waits for 2."""


async def versions_of(engines: Mapping[str, Engine]) -> dict[str, str]:
    """The versions of those engines' clusters that tell one in time."""
    told = [(name, engine) for name, engine in engines.items() if isinstance(engine, Versioned)]
    versions = await asyncio.gather(*(_version_of(engine) for _, engine in told))
    return {name: version for (name, _), version in zip(told, versions, strict=True)}


async def _version_of(engine: Versioned) -> str:
    try:
        async with asyncio.timeout(_MOST_SECONDS_OF_VERSION):
            return await engine.version()
    except (CorralError, TimeoutError):
        return ""


def parts_of(
    *,
    ready: bool,
    troubles: Sequence[str],
    engines: Sequence[str],
    versions: Mapping[str, str],
    away: Mapping[str, Unavailable],
    agents: Mapping[str, str],
    certificates: Mapping[str, float],
    now: float,
) -> list[ServerPart]:
    """The parts that control sees; `agents` has the trouble of each that is asked, "" where it answers.

    `versions` has those of engines that told one; `certificates` has the time, as `now` in seconds since 1970, when that of
    an engine's cluster ends.
    """
    reasons = tuple(troubles) if ready else ("The scheduler is still starting.", *troubles)
    found = [ServerPart("scheduler", "scheduler", DEGRADED if reasons else OK, corral.__version__, reasons)]
    for name in sorted(engines):
        error = away.get(name)
        late = _late(certificates[name], now) if name in certificates else ()
        state = AWAY if error is not None else DEGRADED if late else OK
        why = late if error is None else (error.message,)
        found.append(ServerPart("engine", name, state, versions.get(name, ""), why))
    for name, trouble in sorted(agents.items()):
        found.append(ServerPart("agent", name, AWAY if trouble else OK, reasons=(trouble,) if trouble else ()))
    return found


def _late(ends: float, now: float) -> tuple[str, ...]:
    """What is said of a certificate that ends soon, or has ended."""
    if ends - now >= _SOON:
        return ()
    day = datetime.fromtimestamp(ends, UTC).strftime("%Y-%m-%d")
    when = f"end on {day}" if ends > now else f"have ended on {day}"
    return (
        f"The certificates of its cluster {when}: renew them (corral deploy certs renew, or kubeadm certs renew all).",
    )
