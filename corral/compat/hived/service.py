"""Read HiveD's own documents about its state from control."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from corral.kernel.errors import CorralError, InvalidInput, NotFound
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.service import Service


class HivedInspection:
    """HiveD's own documents about its state."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def inspect(self, actor: Actor, what: str) -> Any:
        """HiveD's own document below the address `/v1/inspect/`.

        Raises InvalidInput for a group or virtual cluster that HiveD does not know, NotFound while its preset is not in
        force, Unavailable while no control answers.
        """
        await self._context.check(actor, "cluster.read", Resource("cluster"))
        try:
            return await self._context.control.request(f"/overview/hived?{urlencode({'what': what})}")
        except CorralError as error:
            if error.code in ("hived-not-in-force", "nothing-to-inspect"):
                raise NotFound(error.code, error.message) from None
            if error.code in ("unknown-group", "unknown-virtual-cluster"):
                raise InvalidInput(error.code, error.message) from None
            raise


def compose(service: Service, options: Mapping[str, Any]) -> HivedInspection:
    """Compose HiveD's operations over `service`; HiveD has no settings here."""
    return HivedInspection(service.context)
