"""The service parts of tenants: what they compose over the service and register with it."""

from __future__ import annotations

from typing import Any, Final

from corral.kernel.plug_ins import plug_ins
from corral.service.service import Service
from corral.service.tenant_settings import Options, no_options

GROUP: Final = "corral.service"
"""The entry-point group; an object is called with the service and the tenant's options, and returns the tenant's part."""


def compose_tenants(service: Service, options: Options = no_options) -> dict[str, Any]:
    """Compose the service part of every tenant over `service`; by the tenant's name."""
    return {name: point.load()(service, options(name)) for name, point in plug_ins(GROUP).items()}
