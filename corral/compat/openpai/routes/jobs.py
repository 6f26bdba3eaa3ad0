"""OpenPAI's routes for one job of protocol v2: submit, read, start and stop."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
import yaml
from fastapi import Path, Request
from starlette.responses import PlainTextResponse, Response

from corral.api.json_responses import Json
from corral.api.late_routes import late_router
from corral.compat.openpai.routes.callers import AnyCaller
from corral.compat.openpai.routes.operations import openpai_of
from corral.compat.openpai.routes.request_bodies import body_of
from corral.compat.openpai.service.errors import OpenPaiRefusal, no_attempt, no_job
from corral.spec.yaml_scalars import resolve

router = late_router()

Job = Annotated[str, Path(max_length=600)]
"""A job reference, `user~job`."""
_DIGITS: Final = 12


class Message(msgspec.Struct, frozen=True):
    """The answer of a change: one sentence."""

    message: str


class Accepted(msgspec.Struct, frozen=True):
    """The answer of an asynchronous change; OpenPAI repeats the status in it."""

    message: str
    status: int = 202


class Value(msgspec.Struct, frozen=True):
    """A body with one value."""

    value: str


def owner_and_name(ref: str) -> tuple[str, str]:
    """Split `user~job` into its two parts.

    Raises OpenPaiRefusal (no such job) for anything else.
    """
    user, tilde, name = ref.partition("~")
    if not (user and tilde and name):
        raise no_job(ref)
    return user, name


def number_of(text: str, refusal: OpenPaiRefusal) -> int:
    """Parse a number in a path.

    Raises `refusal` for anything else.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise refusal
    return int(text)


async def value_of(request: Request) -> str:
    """Return the value in the body.

    Raises OpenPaiRefusal if it is missing.
    """
    return (await body_of(request, Value)).value


@router.post("/jobs")
async def submit(request: Request, actor: AnyCaller) -> Json:
    """Submit a job of protocol v2."""
    name = await openpai_of(request).jobs.submit(actor, await request.body())
    return Json(Accepted(f"update job {name} successfully"), 202)


@router.get("/jobs/{ref}")
async def get_job(request: Request, actor: AnyCaller, ref: Job) -> Json:
    """Return a job with its current attempt."""
    return Json(await openpai_of(request).jobs.get(actor, *owner_and_name(ref)))


@router.get("/jobs/{ref}/attempts/{attempt}")
async def get_job_at_attempt(request: Request, actor: AnyCaller, ref: Job, attempt: str) -> Json:
    """Return a job at one of its attempts."""
    number = number_of(attempt, no_attempt(attempt, ref))
    return Json(await openpai_of(request).jobs.get(actor, *owner_and_name(ref), attempt=number))


@router.get("/jobs/{ref}/config")
async def get_config(request: Request, actor: AnyCaller, ref: Job) -> Response:
    """Return the job file with masked secrets: JSON with the media type of YAML, as in OpenPAI."""
    protocol = await openpai_of(request).jobs.config(actor, *owner_and_name(ref))
    return Response(msgspec.json.encode(protocol), media_type="text/yaml; charset=utf-8")


@router.put("/jobs/{ref}/executionType")
async def execute(request: Request, actor: AnyCaller, ref: Job) -> Json:
    """Start or stop a job."""
    user, name = owner_and_name(ref)
    await openpai_of(request).jobs.execute(actor, user, name, await value_of(request))
    return Json(Accepted(f"execute job {name} successfully"), 202)


@router.get("/jobs/{ref}/ssh")
async def get_ssh(request: Request, actor: AnyCaller, ref: Job) -> Json:
    """Return null, as OpenPAI does since it runs on Kubernetes."""
    await openpai_of(request).jobs.ssh(actor, *owner_and_name(ref))
    return Json(None)


@router.put("/jobs/{ref}/tag")
async def add_tag(request: Request, actor: AnyCaller, ref: Job) -> Json:
    """Add a tag to a job."""
    tag = await value_of(request)
    await openpai_of(request).jobs.tag(actor, *owner_and_name(ref), tag, there=True)
    return Json(Message(f"Add tag {tag} for job {ref} successfully."))


@router.delete("/jobs/{ref}/tag")
async def delete_tag(request: Request, actor: AnyCaller, ref: Job) -> Json:
    """Remove a tag from a job."""
    tag = await value_of(request)
    await openpai_of(request).jobs.tag(actor, *owner_and_name(ref), tag, there=False)
    return Json(Message(f"Delete tag {tag} from job {ref} successfully."))


@router.get("/jobs/{ref}/events")
async def get_events(request: Request, actor: AnyCaller, ref: Job) -> Json:
    """List the events of a job, newest first."""
    kind = request.query_params.get("type", "")
    return Json(await openpai_of(request).jobs.events(actor, *owner_and_name(ref), kind))


@router.get("/jobs/{ref}/job-attempts/healthz")
@router.get("/jobs/{ref}/jobAttempts/healthz")
async def attempts_are_kept(request: Request, actor: AnyCaller, ref: Job) -> Response:
    """Report that the history of attempts is available; here it always is."""
    return PlainTextResponse("ok")


@router.get("/jobs/{ref}/job-attempts")
@router.get("/jobs/{ref}/jobAttempts")
async def get_attempts(request: Request, actor: AnyCaller, ref: Job) -> Json:
    """List all attempts of a job."""
    return Json(await openpai_of(request).jobs.attempts(actor, *owner_and_name(ref)))


@router.get("/jobs/{ref}/job-attempts/{attempt}")
@router.get("/jobs/{ref}/jobAttempts/{attempt}")
async def get_attempt(request: Request, actor: AnyCaller, ref: Job, attempt: str) -> Json:
    """Return one attempt of a job."""
    number = number_of(attempt, no_attempt(attempt, ref))
    return Json(await openpai_of(request).jobs.attempt(actor, *owner_and_name(ref), number))


class _Dumper(yaml.CSafeDumper):
    """Quotes text that a YAML 1.2 parser would read as another type, such as a job's name `1e5`."""


def _text(dumper: _Dumper, text: str) -> yaml.Node:
    style = None if isinstance(resolve(text), str) else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _text)


def as_yaml(protocol: dict[str, Any]) -> str:
    """Return a protocol as YAML, with its fields in their given order."""
    text: str = yaml.dump(protocol, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text
