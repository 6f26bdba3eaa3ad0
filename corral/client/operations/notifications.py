"""Calls for the channels on which people are told of their jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from corral.client.calls import Call, call

if TYPE_CHECKING:
    from corral.client.schema import ChannelView, NewChannelView, NotificationView
    from corral.client.types import Page


def channels() -> Call[Page[ChannelView]]:
    """Return the caller's channels for notifications."""
    return call("GET", "/account/notifications")


def add_channel(
    name: str,
    kind: str,
    address: str,
    *,
    events: Sequence[str] | None = None,
    waiting_seconds: int = 0,
    jobs: str = "*",
) -> Call[NewChannelView]:
    """Add a channel: `mail`, `webhook`, `slack`, `teams` or `apprise`. It is sent a code for `verify_channel`.

    Only this answer has the key of a webhook's signatures.
    """
    data: dict[str, Any] = {"name": name, "kind": kind, "address": address}
    data |= {"waitingSeconds": waiting_seconds, "jobs": jobs}
    data |= {} if events is None else {"events": list(events)}
    return call("POST", "/account/notifications", data=data)


def change_channel(
    name: str, *, events: Sequence[str] | None = None, waiting_seconds: int | None = None, jobs: str | None = None
) -> Call[ChannelView]:
    """Change what is told on a channel; None keeps a field."""
    told = None if events is None else list(events)
    given = {"events": told, "waitingSeconds": waiting_seconds, "jobs": jobs}
    return call("POST", f"/account/notifications/{name}", data=given)


def verify_channel(name: str, code: str) -> Call[ChannelView]:
    """Verify a channel with the code that it was sent."""
    return call("POST", f"/account/notifications/{name}/verify", data={"code": code})


def send_channel_code(name: str) -> Call[None]:
    """Send another code to a channel that is not verified."""
    return call("POST", f"/account/notifications/{name}/code")


def test_channel(name: str) -> Call[None]:
    """Send a test message to a verified channel."""
    return call("POST", f"/account/notifications/{name}/test")


def remove_channel(name: str) -> Call[None]:
    """Remove a channel."""
    return call("DELETE", f"/account/notifications/{name}")


def notifications(*, limit: int = 100, after: str = "") -> Call[Page[NotificationView]]:
    """Return a page of the messages to the caller, newest first, with what came of them."""
    return call("GET", "/account/notification-history", {"limit": limit, "after": after})
