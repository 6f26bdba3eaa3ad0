"""Read the audit log."""

from __future__ import annotations

from typing import Final

from corral.model.accounts import AuditFilter, AuditRecord
from corral.model.records import Page
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context

_ALL: Final = AuditFilter()


class AuditLog:
    """The audit log."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    async def page(
        self, actor: Actor, wanted: AuditFilter = _ALL, *, limit: int = 200, after: str = ""
    ) -> Page[AuditRecord]:
        """One page of the wanted lines of the audit log, the latest first."""
        await self._context.check(actor, "audit.read", Resource("audit"))
        return await self._store.audit(wanted, limit=limit, after_cursor=after)
