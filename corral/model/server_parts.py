"""The parts of a server as administrators see them: what each is, its version, and what does not work."""

from __future__ import annotations

from typing import Annotated, Final

from corral.model.records import Record, one_of

OK: Final = "ok"
DEGRADED: Final = "degraded"
AWAY: Final = "away"


class ServerPart(Record, frozen=True):
    """One part of the server."""

    kind: Annotated[str, one_of("front", "scheduler", "store", "engine", "agent", "machine", "containers", "exporter")]
    """An agent is `corral node-agent` on another machine, whose figures the scheduler asks for. The machine is the
    scheduler's own; containers and exporters are what runs there: what starts containers of jobs, and what is read
    instead of measuring."""
    name: str
    state: Annotated[str, one_of(OK, DEGRADED, AWAY)]
    """`degraded` works with the `reasons` as limits; `away` does not answer."""
    version: str = ""
    """"" where the part tells none; of a machine that of its kernel."""
    reasons: tuple[str, ...] = ()
    """What does not work, one sentence each."""
    runs_on: tuple[str, ...] = ()
    """Of a machine and of an agent's: its operating system, its kernel and drivers of devices, with their versions."""
