"""The engines that the settings name: each kind with its settings, and what the server asks all of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from corral.engines.kind import EngineKind, EngineSettings
from corral.engines.registry import engine_kind, engine_settings
from corral.kernel.errors import InvalidInput
from corral.settings import Settings

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class ChosenEngine(NamedTuple):
    """A kind of engine that the settings name."""

    kind: EngineKind[Any]
    settings: EngineSettings


def chosen_engines(settings: Settings) -> tuple[ChosenEngine, ...]:
    """The engines that the settings name, in their order.

    Raises InvalidInput for an unknown kind, and for a setting of a kind that is not valid.
    """
    kinds = [engine_kind(name) for name in settings.engine]
    return tuple(ChosenEngine(kind, engine_settings(kind, settings.of_others)) for kind in kinds)


def check_engines(settings: Settings) -> None:
    """Refuse settings with which an engine cannot work.

    Raises InvalidInput that names the setting.
    """
    for kind, own in chosen_engines(settings):
        kind.check(own)
        if not kind.on_this_machine and not settings.advertise and settings.host in _LOOPBACK:
            message = (
                f"Tasks of the engine {kind.name} cannot reach this server at a loopback address: say where they can with "
                "--advertise URL."
            )
            raise InvalidInput("advertise-missing", message)


def several_users(settings: Settings, chosen: Sequence[ChosenEngine]) -> bool:
    """Whether several accounts are allowed: tasks of each run apart on every engine, or all accounts are trusted."""
    return settings.trust_users or os.getuid() == 0 or not any(each.kind.on_this_machine for each in chosen)


def allots_uids(settings: Settings, chosen: Sequence[ChosenEngine]) -> bool:
    """Whether each account gets a system uid for its tasks on this machine."""
    return any(each.kind.on_this_machine for each in chosen) and os.getuid() == 0 and not settings.trust_users


def disk_limit(chosen: Sequence[ChosenEngine]) -> int:
    """Bytes that a task may write to its node on the engine that allows most; 0 is no limit."""
    limits = [kind.disk_limit(own) for kind, own in chosen]
    return 0 if 0 in limits else max(limits)


def container_runtime(chosen: Sequence[ChosenEngine]) -> str:
    """What runs the images of jobs on the first engine that can; "" if none can."""
    return next((found for each in chosen if (found := each.kind.container_runtime())), "")
