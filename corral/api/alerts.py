"""Routes of alerts and silences, and Alertmanager's webhook."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import Path, Query, Request

from corral.api.authentication import Caller, service_of
from corral.api.json_responses import Json, answers, json_body, no_content, read_json
from corral.api.parameters import After, Limit
from corral.api.routers import router_of
from corral.model.alerts.matchers import LONGEST_MATCHER
from corral.model.alerts.views import AlertList, PastAlertView, SilenceList, SilenceView, Taken
from corral.model.records import Page
from corral.service.alerts.alerts import LONGEST_SILENCE
from corral.service.alerts.webhook import WebhookCall

router = router_of("alerts")

_Matcher = Annotated[str, msgspec.Meta(max_length=LONGEST_MATCHER)]


class SilenceBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A silence: matchers such as `alertname=~"Node.*"`, its length in seconds, and its reason."""

    matchers: Annotated[list[_Matcher], msgspec.Meta(min_length=1, max_length=20)]
    seconds: Annotated[float, msgspec.Meta(gt=0, le=LONGEST_SILENCE)]
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=500)]


@router.get("/alerts", responses=answers(AlertList))
async def list_alerts(
    request: Request,
    actor: Caller,
    match: Annotated[
        list[str] | None,
        Query(max_length=20, description='Only alerts that meet this matcher, such as severity="fatal".'),
    ] = None,
) -> Json:
    """List pending, firing and lately resolved alerts.

    Administrators are shown all, others those whose labels name them or their job. A silenced alert names its silences.
    """
    return Json(await service_of(request).alerts.list(actor, match or ()))


@router.get("/alerts/history", responses=answers(Page[PastAlertView]))
async def list_past_alerts(
    request: Request,
    actor: Caller,
    match: Annotated[
        list[str] | None,
        Query(max_length=20, description='Only alerts that meet this matcher, such as severity="fatal".'),
    ] = None,
    begin: Annotated[
        str,
        Query(
            alias="from",
            max_length=40,
            description="Only alerts that fired from this time on, in RFC 3339; usually a week ago.",
        ),
    ] = "",
    end: Annotated[
        str, Query(alias="to", max_length=40, description="Only alerts that fired before this time; usually now.")
    ] = "",
    limit: Limit = 100,
    after: After = "",
) -> Json:
    """List the alerts that have fired, the latest first: those of 90 days, at most 20,000.

    Administrators are shown all, others those whose labels name them or their job.
    """
    alerts = service_of(request).alerts
    return Json(await alerts.history(actor, match or (), begin=begin, end=end, limit=limit, after=after))


@router.get("/alerts/silences", responses=answers(SilenceList))
async def list_silences(request: Request, actor: Caller) -> Json:
    """List the silences that have not ended."""
    return Json(await service_of(request).alerts.silences(actor))


@router.post(
    "/alerts/silences", status_code=201, responses=answers(SilenceView, 201, also=(409, 413)),
    openapi_extra=json_body(SilenceBody),
)  # fmt: skip
async def silence_alerts(request: Request, actor: Caller) -> Json:
    """Silence the alerts that meet all matchers, now and until the silence ends."""
    asked: SilenceBody = read_json(await request.body(), SilenceBody)
    made = service_of(request).alerts.silence(actor, asked.matchers, seconds=asked.seconds, reason=asked.reason)
    return Json(await made, 201)


@router.delete("/alerts/silences/{silence}", status_code=204, responses=answers(None, 204))
async def unsilence_alerts(
    request: Request, actor: Caller, silence: Annotated[str, Path(max_length=100, description="The silence's id.")]
) -> Json:
    """End a silence."""
    await service_of(request).alerts.unsilence(actor, silence)
    return no_content()


@router.post("/alerts/webhook", responses=answers(Taken, also=(413,)), openapi_extra=json_body(WebhookCall))
async def take_alerts(request: Request, actor: Caller) -> Json:
    """Take alerts in the JSON of Alertmanager's webhook; they are listed with Corral's own.

    The token is an administrator's. An alert that is not told again within two days is forgotten.
    """
    return Json(await service_of(request).alerts.take(actor, await request.body()))
