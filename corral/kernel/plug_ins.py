"""Find plug-ins by group: those of the packages in `corral/compat/`, and the entry points of installed distributions.

A package in `corral/compat/` has `PLUG_INS`: by group, a mapping of names to `MODULE:OBJECT`. So no table elsewhere
names it, and a tree without it lacks nothing else. Another distribution declares entry points of the same groups, and
cannot replace a name of this tree.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from corral.kernel.errors import InvalidInput

RUNTIME: Final = "corral.runtime"
"""The group of modules that prepare tasks; they become part of the runtime's zipapp (`corral.runtime.plug_in`)."""
SECRETS_OF_ACCOUNTS: Final = "corral.secrets_of_accounts"
"""The group whose names are kinds of secrets; those that `KIND:ACCOUNT` owns are removed with the account."""
_TENANTS: Final = "corral.compat"


@cache
def own_plug_ins(group: str) -> Mapping[str, EntryPoint]:
    """The plug-ins of this tree by name, found without a look at other distributions."""
    declared = [importlib.import_module(name).PLUG_INS.get(group, {}) for name in _tenants()]
    return {name: EntryPoint(name, value, group) for each in declared for name, value in each.items()}


@cache
def plug_ins(group: str) -> Mapping[str, EntryPoint]:
    """All plug-ins of a group by name, those of this tree first."""
    others = {point.name: point for point in _installed().select(group=group)}
    return {**own_plug_ins(group), **{name: each for name, each in others.items() if name not in own_plug_ins(group)}}


def load(point: EntryPoint, kind: str, make: Callable[[Any], Any] = lambda found: found()) -> Any:
    """Return what `make` makes of the object that an entry point names, which calls it unless told otherwise.

    Raises InvalidInput `broken-plug-in` with the `kind` of plug-in if it cannot be loaded or made.
    """
    try:
        return make(point.load())
    except Exception as error:
        raise broken(point, kind, f"cannot be loaded: {error}") from error


def broken(point: EntryPoint, kind: str, fault: str) -> InvalidInput:
    """Return the refusal of a plug-in; `fault` is the end of the sentence."""
    message = f'The plug-in for the {kind} "{point.name}" ({point.value}) {fault}.'
    return InvalidInput("broken-plug-in", message)


def runtime_modules() -> tuple[str, ...]:
    """The modules of all runtime plug-ins, in the order of their names."""
    return tuple(point.module for _, point in sorted(plug_ins(RUNTIME).items()))


@cache
def _installed() -> Any:
    """The entry points of all distributions, read once: a look at each of them costs 20 to 40 ms."""
    return entry_points()


def _tenants() -> list[str]:
    found = importlib.util.find_spec(_TENANTS)
    folders = (found.submodule_search_locations or ()) if found is not None else ()
    return [f"{_TENANTS}.{each.name}" for each in pkgutil.iter_modules(folders) if each.ispkg]
