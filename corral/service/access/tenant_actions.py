"""Actions that tenants add to the access rules (entry-point group `corral.actions`)."""

from __future__ import annotations

from functools import cache
from typing import Final, Literal, NamedTuple

from corral.kernel.plug_ins import plug_ins

GROUP: Final = "corral.actions"
"""The entry-point group; an entry point's name is the action's, its object a `TenantAction`."""


class TenantAction(NamedTuple):
    """Who may do an action, and the words for it in refusals."""

    allowed: Literal["everybody", "administrators"]
    """Everybody who is signed in, or administrators who act in person."""
    verb: str
    """As in `read this log`; `{}` is the resource."""


@cache
def tenant_actions() -> dict[str, TenantAction]:
    """All actions of tenants by name."""
    return {name: point.load() for name, point in plug_ins(GROUP).items()}


def allowed_to(whom: Literal["everybody", "administrators"]) -> frozenset[str]:
    """The actions of tenants that these may do."""
    return frozenset(name for name, action in tenant_actions().items() if action.allowed == whom)
