"""What control knows of the server's parts: itself, its engines, and the agents of other machines."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import corral
from corral.engines.base import Engine, Versioned
from corral.kernel.errors import CorralError, Unavailable
from corral.model.server_parts import AWAY, DEGRADED, OK, ServerPart

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
) -> list[ServerPart]:
    """The parts that control sees; `agents` has the trouble of each that is asked, "" where it answers.

    `versions` has those of engines that told one.
    """
    reasons = tuple(troubles) if ready else ("The scheduler is still starting.", *troubles)
    found = [ServerPart("scheduler", "scheduler", DEGRADED if reasons else OK, corral.__version__, reasons)]
    for name in sorted(engines):
        error = away.get(name)
        state, reasons = (OK, ()) if error is None else (AWAY, (error.message,))
        found.append(ServerPart("engine", name, state, versions.get(name, ""), reasons))
    for name, trouble in sorted(agents.items()):
        found.append(ServerPart("agent", name, AWAY if trouble else OK, reasons=(trouble,) if trouble else ()))
    return found
