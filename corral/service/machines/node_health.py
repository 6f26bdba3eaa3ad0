"""The health of nodes: what the ledger knows of them, and what administrators have done about it."""

from __future__ import annotations

from typing import Final

import msgspec

from corral.kernel.errors import Conflict, CorralError, InvalidInput, NotFound
from corral.model.health.nvsentinel import HealthEventsTaken, read_events, signs_of
from corral.model.health.records import (
    HealthAct,
    HealthEntryView,
    HealthSigns,
    HealthView,
    entry_view,
)
from corral.model.health.signs import Sign
from corral.model.health.states import Cause
from corral.model.records import Page
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context

_WHY: Final = 500
_REFUSALS: Final = frozenset({"health-state", "health-off"})
ACTS: Final = {"repairing": Cause.REPAIR, "validate": Cause.VALIDATE, "healthy": Cause.CLEARED}
"""What administrators can do, by its name in the API."""


class NodesHealth:
    """The health of nodes."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    async def page(self, actor: Actor) -> Page[HealthView]:
        """The nodes of which anything is known, the worst first, in one page.

        Raises Unavailable when control does not answer.
        """
        await self._context.check(actor, "cluster.read", Resource("cluster"))
        return Page(msgspec.convert(await self._context.control.request("/health"), list[HealthView]))

    async def history(self, actor: Actor, node: str, *, limit: int = 100, after: str = "") -> Page[HealthEntryView]:
        """One page of the signs and moves of a node, newest first. Ordinary users see no jobs of others in it.

        Raises NotFound `node-not-found`.
        """
        await self._context.check(actor, "cluster.read", Resource("cluster"))
        await self._known(node)
        found = await self._store.health_history(node, limit=limit, after_cursor=after)
        shown = [entry_view(each) for each in found.items]
        if not actor.is_admin:
            shown = [msgspec.structs.replace(each, job="") for each in shown]
        return Page(shown, found.next)

    async def act(self, actor: Actor, node: str, act: str, *, why: str = "") -> HealthView:
        """Move a node: `repairing` takes it over, `validate` has it checked, `healthy` ends the suspicion.

        Raises NotFound, Conflict `health-state`, Unavailable when control does not answer.
        """
        resource = Resource("node", node)
        decision = await self._context.check(actor, "node.health", resource)
        if act not in ACTS:
            raise InvalidInput("bad-act", f"A node can be moved to {', '.join(ACTS)}, not to {act[:50]}.")
        if len(why) > _WHY:
            raise InvalidInput("why-too-long", f"The reason is longer than {_WHY} characters.")
        await self._known(node)
        said = " ".join("".join(letter if letter.isprintable() else " " for letter in why).split())
        audit = self._context.line(actor, "node.health", resource, decision, act=act, why=said)
        asked = msgspec.to_builtins(HealthAct(node, ACTS[act], actor.user, said, audit))
        return msgspec.convert(await self._ask("/health/act", asked), HealthView)

    async def events(self, actor: Actor, body: bytes) -> HealthEventsTaken:
        """Take health events of NVSentinel as JSON. A node is named with or without its engine.

        Raises InvalidInput, NotFound for a node that is not known, Unavailable when control does not answer.
        """
        await self._context.check(actor, "node.report", Resource("node"))
        now, signs = self._context.clock.now(), list[Sign]()
        nodes = {row.node.name: row.node for row in await self._store.nodes()}
        short = {name.partition("/")[2]: node for name, node in nodes.items()}
        for event in read_events(body):
            node = nodes.get(event.node_name) or short.get(event.node_name)
            if node is None:
                raise _no_node(event.node_name)
            signs += signs_of(event, node, now)
        if signs:
            asked = msgspec.to_builtins(HealthSigns(tuple(signs)))
            await self._ask("/health/signs", asked)
        return HealthEventsTaken(len(signs))

    async def _ask(self, path: str, body: object) -> object:
        """Control's answer. Raises Conflict if it refuses, because an error of control has no status of its own."""
        try:
            return await self._context.control.request(path, body)
        except CorralError as error:
            if error.code in _REFUSALS:
                raise Conflict(error.code, error.message) from None
            raise

    async def _known(self, node: str) -> None:
        if await self._store.node(node) is None:
            raise _no_node(node)


def _no_node(name: str) -> NotFound:
    return NotFound("node-not-found", f"There is no node {name[:100]}; `corral nodes` lists them.")
