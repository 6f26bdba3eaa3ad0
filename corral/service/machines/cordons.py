"""Cordon and drain nodes."""

from __future__ import annotations

from typing import Final

from corral.kernel.errors import Conflict, InvalidInput, NotFound
from corral.model.cordons import Cordon, CordonView, Drain, cordon_view
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context

_WHY: Final = 500
_LONGEST_GRACE: Final = 86_400.0


class Cordons:
    """Cordons and drains."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock

    async def cordon(self, actor: Actor, node: str, *, why: str = "") -> CordonView:
        """Close a node to new tasks; a drain of the node ends."""
        return await self._close(actor, "node.cordon", node, why, Drain.NONE, None)

    async def drain(
        self, actor: Actor, node: str, *, why: str = "", grace_seconds: float | None = None, after_jobs: bool = False
    ) -> CordonView:
        """Close a node to new tasks, and preempt those on it; with `after_jobs` let them end by themselves."""
        if grace_seconds is not None and not 0 <= grace_seconds <= _LONGEST_GRACE:
            raise InvalidInput("bad-grace", f"The grace is from 0 to {_LONGEST_GRACE:.0f} seconds.")
        how = Drain.AFTER_JOBS if after_jobs else Drain.NOW
        return await self._close(actor, "node.drain", node, why, how, grace_seconds)

    async def uncordon(self, actor: Actor, node: str) -> None:
        """Open a node to new tasks again.

        Raises Conflict `node-not-cordoned`, NotFound.
        """
        resource = Resource("node", node)
        decision = await self._context.check(actor, "node.uncordon", resource)
        line = self._context.line(actor, "node.uncordon", resource, decision)
        if not await self._store.remove_cordon(node, actor=actor.user, at=self._clock.now(), audit=line):
            if await self._store.node(node) is None:
                raise _no_node(node)
            raise Conflict("node-not-cordoned", f"{node} is not cordoned.")

    async def _close(
        self, actor: Actor, action: str, node: str, why: str, drain: Drain, grace: float | None
    ) -> CordonView:
        resource = Resource("node", node)
        decision = await self._context.check(actor, action, resource)
        if len(why) > _WHY:
            raise InvalidInput("why-too-long", f"The reason is longer than {_WHY} characters.")
        if await self._store.node(node) is None:
            raise _no_node(node)
        cordon = Cordon(node, actor.user, _one_line(why), self._clock.now(), drain, grace)
        line = self._context.line(actor, action, resource, decision, why=cordon.why, drain=str(drain))
        await self._store.put_cordon(cordon, audit=line)
        return cordon_view(cordon)


def _one_line(text: str) -> str:
    """The text on one line and without control characters, so that any terminal can show it."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def _no_node(name: str) -> NotFound:
    return NotFound("node-not-found", f"There is no node {name[:100]}; `corral nodes` lists them.")
