"""Find kinds of engines by their entry points in the group `corral.engines`.

`NAME = "MODULE:CLASS"`, where NAME is what `--engine` calls it and CLASS subclasses `EngineKind`. Corral's own kinds are
entry points of its own distribution, which no other can replace. Only the kinds that are asked for are loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from typing import Any, Final

from pydantic import ValidationError

from corral.engines.kind import EngineKind, EngineSettings
from corral.kernel.errors import InvalidInput
from corral.kernel.plug_ins import broken, load
from corral.spec.errors import did_you_mean, shorten

GROUP: Final = "corral.engines"
"""The entry-point group of engine kinds."""
_OWN: Final = "corral"
"""Corral's distribution."""


def engine_names() -> tuple[str, ...]:
    """Return the names of all kinds that are installed, Corral's own first."""
    return tuple(dict.fromkeys([*_own(), *sorted(each.name for each in entry_points(group=GROUP))]))


@cache
def engine_kind(name: str) -> EngineKind[Any]:
    """Return the kind of this name.

    Raises InvalidInput if there is none, or if it cannot be loaded.
    """
    point = _own().get(name) or next(iter(entry_points(group=GROUP, name=name)), None)
    if point is None:
        hint = did_you_mean(name, engine_names()) or "; Corral's installation lists none, so install it again"
        message = f'No engine is called "{shorten(name)}"{hint}'
        raise InvalidInput("unknown-engine", message if message.endswith("?") else f"{message}.")
    return _loaded(point)


def engine_settings(kind: EngineKind[Any], given: Mapping[str, Any]) -> EngineSettings:
    """Return a kind's settings from those of the `given` options that it declares, and from the environment.

    Raises InvalidInput that names the invalid setting.
    """
    declared: type[EngineSettings] = kind.settings
    try:
        return declared(**{name: value for name, value in given.items() if name in declared.model_fields})
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise InvalidInput("invalid-setting", f"The setting {name} cannot be used: {first['msg']}.") from None


@cache
def _own() -> Mapping[str, EntryPoint]:
    """Corral's own entry points, read without a look at all other distributions."""
    try:
        points = distribution(_OWN).entry_points.select(group=GROUP)
    except PackageNotFoundError:
        return {}
    return {point.name: point for point in points}


def _loaded(point: EntryPoint) -> EngineKind[Any]:
    made = load(point, "engine")
    if not isinstance(made, EngineKind) or made.name != point.name:
        raise broken(point, "engine", "does not give an EngineKind of that name")
    return made
