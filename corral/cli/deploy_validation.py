"""`corral deploy add-node --validate`: Corral's own validation of a node that has joined and takes no other tasks yet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol

from corral.kernel.errors import Conflict, CorralError, NotFound, Unavailable

if TYPE_CHECKING:
    from corral.client.schema import HealthView
    from corral.deploy.checks.connection import Refusal

ENGINE: Final = "kubernetes"
"""What the server calls the engine of the cluster that it runs in."""
_LOOK_SECONDS: Final = 2.0
_KNOWN_WITHIN: Final = 180.0
"""Seconds within which the server sees a node that has joined."""
_SILENT_FOR: Final = 900.0
"""Seconds for which a server may be silent."""
_ENDS_WITHIN: Final = 4.5 * 3600
"""Seconds for a validation: the server itself gives up after four hours."""
_WHY: Final = "corral deploy add-node"


class Asked(Protocol):
    """The part of a client that is needed."""

    def server_parts(self) -> Any:
        """The parts of the server, for administrators."""

    def node(self, name: str) -> Any:
        """A node that the server knows."""

    def node_health(self) -> Any:
        """The nodes with signs of trouble."""

    def change_health(self, node: str, act: str, *, why: str = "") -> Any:
        """Move a node."""


def require_engine(client: Asked) -> None:
    """Raise Conflict where the server has no engine of Kubernetes, and Forbidden for others than administrators."""
    engines = {part["name"] for part in client.server_parts()["items"] if part["kind"] == "engine"}
    if ENGINE not in engines:
        raise Conflict(
            "no-engine", f"The server has no engine {ENGINE}: sign in to the server of this cluster (corral login)."
        )


class Validation:
    """Corral's validation of one node after the other."""

    def __init__(
        self, client: Asked, *, engine: str = ENGINE, pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._client, self._engine, self._pause, self._now = client, engine, pause, now

    def require_new(self, hosts: Iterable[str]) -> None:
        """Raise Conflict for a host that the server knows as a node although it is none of this cluster.

        The server is then another cluster's, and a node of that would be validated in its place.
        """
        for host in hosts:
            try:
                self._client.node(f"{self._engine}/{host}")
            except NotFound:
                continue
            raise Conflict(
                "other-cluster",
                f"The server knows a node {host}, and this cluster has none: sign in to the server of this cluster.",
            )

    async def of(self, host: str) -> Refusal | None:
        """Have a node validated, and wait for the end; returns why it is not good."""
        from corral.deploy.checks.connection import Refusal

        node = f"{self._engine}/{host}"
        see = f"See corral nodes health {node}; mend it, then run it again."
        try:
            await self._begin(node)
            why = await self._end(node)
        except CorralError as error:
            why = error.message
        return Refusal(f"it has joined and is not offered: {why}", see) if why else None

    async def _begin(self, node: str) -> None:
        """Ask for a validation as soon as the server knows the node, unless one runs already. Raises CorralError."""
        begun = self._now()
        while True:
            # One runs also where the answer to the question before was lost.
            found = await self._health(node)
            if found is not None and found["state"] == "validating":
                return
            try:
                await asyncio.to_thread(self._client.change_health, node, "validate", why=_WHY)
                return
            except (NotFound, Unavailable):
                if self._now() - begun > _KNOWN_WITHIN:
                    raise
            await self._pause(_LOOK_SECONDS)

    async def _end(self, node: str) -> str:
        """Why the node is not good after its validation; "" where it is."""
        begun = self._now()
        while self._now() - begun < _ENDS_WITHIN:
            found = await self._health(node)
            if found is None or found["state"] == "healthy":
                return ""
            if found["state"] != "validating":
                return f"it is {found['state']}: {found['why']}" if found["why"] else f"it is {found['state']}"
            await self._pause(_LOOK_SECONDS)
        return "its validation does not end"

    async def _health(self, node: str) -> HealthView | None:
        """The health of a node; None where the server knows no sign of trouble.

        Raises Unavailable once the server has been silent for long: it may be started again meanwhile.
        """
        begun = self._now()
        while True:
            try:
                page = await asyncio.to_thread(self._client.node_health)
            except Unavailable:
                if self._now() - begun > _SILENT_FOR:
                    raise
                await self._pause(_LOOK_SECONDS)
            else:
                return next((each for each in page["items"] if each["node"] == node), None)
