"""Routes for the channels on which people are told of their jobs; the address of a webhook is never returned."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import Request

from corral.api.authentication import Caller, service_of
from corral.api.json_responses import Json, answers, json_body, no_content, read_json
from corral.api.parameters import After, Limit, Name
from corral.api.routers import router_of
from corral.model.notifications.channels import ChannelKind, ChannelView, NewChannelView, NotificationView
from corral.model.notifications.happenings import WORDS
from corral.model.records import Page, one_of
from corral.service.people.notifications import DEFAULT_EVENTS

router = router_of("accounts")

_Events = Annotated[
    tuple[Annotated[str, msgspec.Meta(max_length=50), one_of(*WORDS)], ...], msgspec.Meta(max_length=20)
]
_Seconds = Annotated[int, msgspec.Meta(ge=0, le=366 * 86_400)]
_Pattern = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class NewChannel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A channel to add."""

    name: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
    kind: Annotated[str, msgspec.Meta(max_length=20), one_of(*ChannelKind)]
    address: Annotated[str, msgspec.Meta(max_length=2000)]
    """A mail address, or the URL of a webhook, which is stored sealed."""
    events: _Events = DEFAULT_EVENTS
    waiting_seconds: _Seconds = 0
    """Seconds of waiting after which it is told; 0 is never."""
    jobs: _Pattern = "*"
    """A pattern of the names of the jobs that are told, such as `train-*`."""

    def __repr__(self) -> str:
        return "NewChannel(…)"


class ChannelChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A change of what is told on a channel; None leaves a field as it is."""

    events: _Events | None = None
    waiting_seconds: _Seconds | None = None
    jobs: _Pattern | None = None


class CodeGiven(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The code that a channel was sent."""

    code: Annotated[str, msgspec.Meta(min_length=1, max_length=50)]


@router.get("/account/notifications", responses=answers(Page[ChannelView]))
async def list_channels(request: Request, actor: Caller) -> Json:
    """List the caller's channels for notifications, without the secret parts of their addresses."""
    return Json(Page(items=await service_of(request).notifications.all(actor)))


@router.post(
    "/account/notifications",
    status_code=201,
    responses=answers(NewChannelView, 201, also=(409, 429)),
    openapi_extra=json_body(NewChannel),
)
async def add_channel(request: Request, actor: Caller) -> Json:
    """Add a channel and send it a code; only this answer has the key of a webhook's signatures."""
    asked: NewChannel = read_json(await request.body(), NewChannel)
    made = await service_of(request).notifications.add(
        actor,
        asked.name,
        asked.kind,
        asked.address,
        events=asked.events,
        waiting=asked.waiting_seconds,
        jobs=asked.jobs,
    )
    return Json(made, 201)


@router.post("/account/notifications/{name}", responses=answers(ChannelView), openapi_extra=json_body(ChannelChange))
async def change_channel(request: Request, actor: Caller, name: Name) -> Json:
    """Change what is told on a channel."""
    asked: ChannelChange = read_json(await request.body(), ChannelChange)
    changed = await service_of(request).notifications.change(
        actor, name, events=asked.events, waiting=asked.waiting_seconds, jobs=asked.jobs
    )
    return Json(changed)


@router.delete("/account/notifications/{name}", status_code=204, responses=answers(None, 204))
async def remove_channel(request: Request, actor: Caller, name: Name) -> Json:
    """Remove a channel; what waits to be sent there is dropped."""
    await service_of(request).notifications.remove(actor, name)
    return no_content()


@router.post(
    "/account/notifications/{name}/verify",
    responses=answers(ChannelView, also=(409,)),
    openapi_extra=json_body(CodeGiven),
)
async def verify_channel(request: Request, actor: Caller, name: Name) -> Json:
    """Verify a channel with the code that it was sent."""
    asked: CodeGiven = read_json(await request.body(), CodeGiven)
    return Json(await service_of(request).notifications.verify(actor, name, asked.code))


@router.post("/account/notifications/{name}/code", status_code=204, responses=answers(None, 204, also=(409, 429)))
async def send_channel_code(request: Request, actor: Caller, name: Name) -> Json:
    """Send another code to a channel that is not verified."""
    await service_of(request).notifications.send_code(actor, name)
    return no_content()


@router.post("/account/notifications/{name}/test", status_code=204, responses=answers(None, 204, also=(409, 429)))
async def test_channel(request: Request, actor: Caller, name: Name) -> Json:
    """Send a test message to a verified channel; the history tells what came of it."""
    await service_of(request).notifications.test(actor, name)
    return no_content()


@router.get("/account/notification-history", responses=answers(Page[NotificationView]))
async def list_notifications(request: Request, actor: Caller, limit: Limit = 100, after: After = "") -> Json:
    """List the messages to the caller, newest first, with what came of them."""
    return Json(await service_of(request).notifications.history(actor, limit=limit, after=after))
