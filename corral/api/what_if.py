"""The routes of what-if questions: answered at once, or later with their progress as events."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Header, Request

from corral.api.authentication import Caller, service_of
from corral.api.client_disconnect import cancel_on_disconnect
from corral.api.held_stream import HeldStream
from corral.api.json_responses import Json, answers, json_body, no_content, read_json
from corral.api.question_events import EVENTS, Number, question_events
from corral.api.routers import router_of
from corral.api.stream_limits import HoldsEvents
from corral.model.what_if import WhatIfAnswer, WhatIfRequest
from corral.model.what_if_progress import WhatIfQuestions, WhatIfStatus

router = router_of("cluster")

_LATER: Final = "respond-async"
"""The preference of a caller that wants a 202 (RFC 7240, section 4.1)."""
_ACCEPTED: Final = answers(WhatIfStatus, 202, text="With `Prefer: respond-async`: it is answered later, at `Location`")

Prefer = Annotated[
    str,
    Header(max_length=500, description="`respond-async`: answer 202 at once, and the question at `Location` later."),
]


@router.post(
    "/what-if",
    responses=answers(WhatIfAnswer, also=(409,)) | {202: _ACCEPTED[202]},
    openapi_extra=json_body(WhatIfRequest),
)
async def what_if(request: Request, actor: Caller, prefer: Prefer = "") -> Json:
    """Say what is to be expected as things are, and with changes: waits of queues, starts of jobs, devices in use.

    The scheduler itself plays it on copies of the present state; nothing is changed. It ends when the caller disconnects.
    With `Prefer: respond-async` the answer is 202 with a `Location`, and the question is played in the background.
    """
    asked: WhatIfRequest = read_json(await request.body(), WhatIfRequest)
    service = service_of(request)
    if not _later(prefer):
        return Json(await cancel_on_disconnect(request, service.what_if.ask(actor, asked)))
    started = await service.kept_questions.start(actor, asked)
    headers = {"Location": f"/api/v3/what-if/{started.id}", "Preference-Applied": _LATER}
    return Json(started, 202, headers)


@router.get("/what-if", responses=answers(WhatIfQuestions))
async def questions(request: Request, actor: Caller) -> Json:
    """List the caller's own questions that are answered later: those that run, and the last ones with an answer."""
    return Json(await service_of(request).kept_questions.of_user(actor))


@router.get("/what-if/{question}", responses=answers(WhatIfStatus))
async def question(request: Request, actor: Caller, question: Number) -> Json:
    """Say how far a question is; once it is done with its answer, once it has failed with the reason.

    It is kept for ten minutes after its end, and ends with the sign-in that asked it.
    """
    return Json(await service_of(request).kept_questions.status(actor, question))


@router.delete("/what-if/{question}", responses=answers(None, 204, text="It is cancelled"))
async def cancel(request: Request, actor: Caller, question: Number) -> Json:
    """Cancel a question: its processes end, and its answer is forgotten."""
    await service_of(request).kept_questions.cancel(actor, question)
    return no_content()


@router.get(
    "/what-if/{question}/events",
    dependencies=[HoldsEvents],
    responses=EVENTS,
)
async def progress(request: Request, actor: Caller, question: Number) -> HeldStream:
    """Stream the states of a question, without its answer; the first one comes at once, and the stream ends with it."""
    states = await service_of(request).kept_questions.follow(actor, question)
    return question_events(request, actor, states)


def _later(prefer: str) -> bool:
    """Whether the preferences of a header (RFC 7240) ask for an answer later."""
    return any(each.partition(";")[0].strip().lower() == _LATER for each in prefer.split(","))
