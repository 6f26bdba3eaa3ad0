"""Read from a job's canonical document what its owner asks to be told of it."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec

from corral.model.notifications.channels import Wishes
from corral.model.notifications.happenings import expanded


class _Notifications(msgspec.Struct, frozen=True, rename="camel"):
    events: tuple[str, ...] = ()
    waiting_seconds: int = 0
    channels: tuple[str, ...] = ()
    quiet: bool = False


class _Spec(msgspec.Struct, frozen=True):
    notifications: _Notifications = _Notifications()


class _Document(msgspec.Struct, frozen=True):
    spec: _Spec = _Spec()


_DOCUMENT: Final = msgspec.json.Decoder(_Document)
_MARK: Final = '"notifications"'


def wishes_of(document: str) -> Wishes | None:
    """What a document asks for; None if it leaves all to the preferences of the channels, or is none."""
    at = document.find(_MARK)
    return None if at < 0 else _read(document)


@lru_cache(256)
def _read(document: str) -> Wishes | None:
    try:
        asked = _DOCUMENT.decode(document).spec.notifications
        events = expanded(asked.events)
    except (msgspec.DecodeError, ValueError):  # stored by another version
        return None
    if asked.quiet:
        return Wishes(())
    return (
        Wishes(events, asked.waiting_seconds, asked.channels)
        if events or asked.waiting_seconds or asked.channels
        else None
    )
