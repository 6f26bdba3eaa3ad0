"""What control knows of the server's parts: itself, its engines, and the agents of other machines."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final, NamedTuple

import corral
from corral.engines.base import OF_API, OF_REGISTRY, Engine, Versioned
from corral.kernel.errors import CorralError, Unavailable
from corral.model.metrics.agent_page import NO_VERSIONS, AgentVersions
from corral.model.server_parts import AWAY, DEGRADED, OK, ServerPart

_DAY: Final = 86400.0
_SOON: Final = 30 * _DAY
"""Seconds before its end at which a certificate is told of, as by `corral deploy certs status`."""
_MOST_SECONDS_OF_VERSION: Final = 1.0
"""Seconds that a cluster has to tell its version; what asks for the parts waits for 2."""


class _Renewal(NamedTuple):
    """How certificates are named, and how they are renewed."""

    whose: str
    how: str


_RENEWAL: Final[Mapping[str, _Renewal]] = {
    OF_API: _Renewal(whose="cluster", how="renew them (corral deploy certs renew, or kubeadm certs renew all)"),
    OF_REGISTRY: _Renewal(whose="cluster's registry", how="run corral deploy up, which makes new ones"),
}
_NONE_TOLD: Final[Mapping[str, AgentVersions]] = MappingProxyType({})


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
    certificates: Mapping[tuple[str, str], float],
    now: float,
    told: Mapping[str, AgentVersions] = _NONE_TOLD,
) -> list[ServerPart]:
    """The parts that control sees; `agents` has the trouble of each that is asked, "" where it answers.

    `told` has the versions of those agents that told any.
    `versions` has those of engines that told one; `certificates` has the times, as `now` in seconds since 1970, when those
    of an engine's cluster end, by engine and by whose they are.
    """
    reasons = tuple(troubles) if ready else ("The scheduler is still starting.", *troubles)
    found = [ServerPart("scheduler", "scheduler", DEGRADED if reasons else OK, corral.__version__, reasons)]
    for name in sorted(engines):
        error = away.get(name)
        late = tuple(_late(certificates, name, now))
        state = AWAY if error is not None else DEGRADED if late else OK
        why = late if error is None else (error.message,)
        found.append(ServerPart("engine", name, state, versions.get(name, ""), why))
    for name, trouble in sorted(agents.items()):
        versions_there = told.get(name, NO_VERSIONS)
        found.append(
            ServerPart(
                "agent", name, AWAY if trouble else OK, versions_there.agent, (trouble,) if trouble else (),
                _runs_on(versions_there),
            )
        )  # fmt: skip
    return found


def _runs_on(told: AgentVersions) -> tuple[str, ...]:
    return (*([f"Linux {told.kernel}"] if told.kernel else []), *told.runs_on)


def _late(certificates: Mapping[tuple[str, str], float], engine: str, now: float) -> Iterator[str]:
    """What is said of the certificates of an engine's cluster that end soon, or have ended."""
    for (name, of), ends in certificates.items():
        if name != engine or of not in _RENEWAL or ends - now >= _SOON:
            continue
        day = datetime.fromtimestamp(ends, UTC).strftime("%Y-%m-%d")
        when = f"end on {day}" if ends > now else f"have ended on {day}"
        renewal = _RENEWAL[of]
        yield f"The certificates of its {renewal.whose} {when}: {renewal.how}."
