"""Tell which daemon of a pair is active, and whether the other one could take over."""

from __future__ import annotations

from collections.abc import AsyncIterator

from corral.engines.kind import Finding
from corral.engines.yarn.hadoop_rest import HadoopRest


async def pair(name: str, daemons: HadoopRest, path: str, **query: str) -> AsyncIterator[Finding]:
    """One finding if there are several daemons. `path` is something small that only the active one tells."""
    states = await daemons.states(path, **query)
    if len(states) < 2:
        return
    active = [url for url, state in states.items() if state == "active"]
    standby = [url for url, state in states.items() if state == "standby"]
    told = [*(f"{url} is active" for url in active), *(f"{url} is a standby" for url in standby)]
    silent = [state.rstrip(".") for state in states.values() if state not in ("active", "standby")]
    if len(active) > 1:
        message = f"{' and '.join(active)} all answer as active ones, as only routers and HttpFS may"
        yield Finding(name, "note", message)
    elif silent or not active:
        yield Finding(name, "note", "; ".join((*told, *silent, "nothing takes over if the active one ends")))
    else:
        yield Finding(name, "good", "; ".join(told))
