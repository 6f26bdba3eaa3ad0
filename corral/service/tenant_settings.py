"""Settings that tenants declare: options of the server, found by entry point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from pydantic import ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from corral.kernel.errors import InvalidInput
from corral.kernel.plug_ins import broken, load, plug_ins

GROUP: Final = "corral.settings"
"""The entry-point group; an entry point's name is the tenant's, its object a subclass of `TenantSettings`."""

Options = Callable[[str], Mapping[str, Any]]
"""The settings of a tenant by its name, without that name's beginning."""


class TenantSettings(BaseSettings):
    """The settings of one tenant, from the same options and `CORRAL_…` variables as the server's own.

    Their names begin with the tenant's and `_`.
    """

    model_config = SettingsConfigDict(env_prefix="CORRAL_", extra="ignore", frozen=True)


@cache
def tenant_settings() -> Mapping[str, type[TenantSettings]]:
    """The classes of settings by tenant.

    Raises InvalidInput `broken-plug-in` if one cannot be loaded, or has a setting that is named like another's.
    """
    found = {}
    for name, point in sorted(plug_ins(GROUP).items()):
        declared = load(point, "settings", lambda each: each)
        if not (isinstance(declared, type) and issubclass(declared, TenantSettings)):
            raise broken(point, "settings", "must be a subclass of TenantSettings")
        if strange := [each for each in declared.model_fields if not each.startswith(f"{name}_")]:
            raise broken(point, "settings", f"has the setting {strange[0]}, whose name must begin with {name}_")
        found[name] = declared
    return found


def tenant_options(given: Mapping[str, Any]) -> Options:
    """Return what gives a tenant its settings: those of the `given` options that it declares, and of the environment.

    Raises InvalidInput that names the invalid setting.
    """
    read = {name: _read(name, declared, given) for name, declared in tenant_settings().items()}
    return lambda name: read.get(name, {})


def _read(name: str, declared: type[TenantSettings], given: Mapping[str, Any]) -> dict[str, Any]:
    try:
        read = declared(**{key: value for key, value in given.items() if key in declared.model_fields})
    except ValidationError as error:
        first = error.errors()[0]
        setting = ".".join(str(part) for part in first["loc"])
        raise InvalidInput("invalid-setting", f"The setting {setting} cannot be used: {first['msg']}.") from None
    return {key.removeprefix(f"{name}_"): value for key, value in iter(read)}


def no_options(name: str) -> Mapping[str, Any]:
    """No settings, so that each tenant has its defaults."""
    return {}
