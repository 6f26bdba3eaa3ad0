"""Read the audit log."""

from __future__ import annotations

from corral.model.accounts import AuditRecord
from corral.model.records import Page
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context


class AuditLog:
    """The audit log."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    async def page(self, actor: Actor, *, limit: int = 200, after: str = "") -> Page[AuditRecord]:
        """One page of the audit log, the latest line first."""
        await self._context.check(actor, "audit.read", Resource("audit"))
        return await self._store.audit(limit=limit, after_cursor=after)
