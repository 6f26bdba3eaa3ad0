"""The service parts of tenants: what they compose over the service and register with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from corral.kernel.plug_ins import plug_ins
from corral.service.service import Service

GROUP: Final = "corral.service"
"""The entry-point group; an object is called with the service and the tenant's options, and returns the tenant's part."""

Options = Callable[[str], Mapping[str, Any]]
"""The settings of a tenant by its name: those whose names begin with it, without that beginning."""


def no_options(name: str) -> Mapping[str, Any]:
    """No settings, so that each tenant has its defaults."""
    return {}


def compose_tenants(service: Service, options: Options = no_options) -> dict[str, Any]:
    """Compose the service part of every tenant over `service`; by the tenant's name."""
    return {name: point.load()(service, options(name)) for name, point in plug_ins(GROUP).items()}
