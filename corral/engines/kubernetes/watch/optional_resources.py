"""Check once whether the cluster serves optional resources and lets Corral read them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from corral.engines.kubernetes.api.backoff import Backoff
from corral.engines.kubernetes.api.resources import Call, Resource
from corral.engines.kubernetes.watch.watch_source import Source
from corral.kernel.errors import CorralError, Forbidden, NotFound


async def why_not(source: Source, resources: Iterable[Resource], seed: int | str) -> str:
    """Return why these cannot be followed on this cluster, "" when they can. Retries until the cluster answers."""
    backoff = Backoff(low=0.2, high=10.0, seed=seed, ids=("following", *(each.title for each in resources)))
    while True:
        try:
            for resource in resources:
                await source.ask(Call("list", resource), params={"limit": "1"})
        except (NotFound, Forbidden) as error:
            return error.message
        except CorralError:
            await asyncio.sleep(backoff.next())
        else:
            return ""
