"""Routes for bundles of compiled code: those that runtimes call with the token of their job, and those for people."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

import msgspec
from fastapi import Header, Path, Query, Request
from fastapi.responses import FileResponse
from starlette.requests import ClientDisconnect

from corral.api.authentication import Caller, service_of
from corral.api.client_disconnect import cancel_on_disconnect
from corral.api.json_responses import Json, answers, json_body, no_content, read_json
from corral.api.routers import router_of
from corral.kernel.errors import InvalidInput
from corral.model.compile_caches import CacheList, CacheOffer, JobCache
from corral.service.jobs.compile_caches import Measured

router = router_of("caches")
_BINARY: Final = {"content": {"application/gzip": {"schema": {"type": "string", "format": "binary"}}}}
_SENT: Final = {"content": _BINARY["content"] | {"application/octet-stream": _BINARY["content"]["application/gzip"]}}
_FILE: Final = {status: shown for status, shown in answers(None, also=(409,)).items() if status != 200} | {
    200: {"description": "A tar.gz archive", **_BINARY},
}
_SHA_256: Final = re.compile(r"sha-256=:([A-Za-z0-9+/]{43}=):")
_Digest = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$", description="The SHA-256 of the bundle.")]
_Attempt = Annotated[str, Query(max_length=200, description="The calling task's own attempt id.")]
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=10**9)]


class OfferBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which task asks for a bundle, and what its compiled code depends on."""

    attempt: Annotated[str, msgspec.Meta(max_length=200)]
    facts: dict[str, str]


class CacheUseBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What a runtime measured: files and seconds of the restore, files that are new, seconds to the first step."""

    attempt: Annotated[str, msgspec.Meta(max_length=200)]
    files: _Count = 0
    restore_seconds: _Seconds | None = None
    new_files: _Count | None = None
    first_step_seconds: _Seconds | None = None
    refused: Annotated[str, msgspec.Meta(max_length=200)] = ""

    def measured(self) -> Measured:
        """The measurements alone."""
        return Measured(self.files, self.restore_seconds, self.new_files, self.first_step_seconds, self.refused)


@router.post("/runtime/cache", responses=answers(CacheOffer, also=(409,)), openapi_extra=json_body(OfferBody))
async def offer_bundle(request: Request, actor: Caller) -> Json:
    """Find the bundle of compiled code for a task, and the key under which it may publish another one."""
    asked: OfferBody = read_json(await request.body(), OfferBody)
    return Json(await service_of(request).compile_caches.offer(actor, attempt=asked.attempt, facts=asked.facts))


@router.get("/runtime/cache/{digest}", response_class=FileResponse, responses=_FILE)
async def read_bundle(request: Request, actor: Caller, digest: _Digest, attempt: _Attempt) -> FileResponse:
    """Return a bundle that the token's job may read; the caller checks its SHA-256."""
    path = await service_of(request).compile_caches.bundle(actor, digest, attempt=attempt)
    return FileResponse(path, media_type="application/gzip")


@router.put(
    "/runtime/cache/bundle",
    status_code=204,
    responses=answers(None, 204, also=(409, 413)),
    openapi_extra={"requestBody": {"required": True, "description": "A tar.gz archive of regular files.", **_SENT}},
)
async def publish_bundle(
    request: Request,
    actor: Caller,
    attempt: _Attempt,
    key: Annotated[str, Query(pattern=r"^[0-9a-f]{64}$", description="The key that the task was given.")],
    files: Annotated[int, Query(ge=1, le=200_000, description="How many files the bundle has.")],
    content_digest: Annotated[str, Header(description="The bundle's SHA-256, as `sha-256=:BASE64:` (RFC 9530).")],
    after: Annotated[
        str, Query(pattern=r"^([0-9a-f]{64})?$", description='The bundle that the task started from; "" is none.')
    ] = "",
) -> Json:
    """Publish what a task compiled; refused when another task was first."""
    said = _SHA_256.fullmatch(content_digest)
    if said is None:
        raise InvalidInput("digest-missing", "Content-Digest must have the bundle's SHA-256.")
    received = asyncio.Event()

    async def chunks() -> AsyncIterator[bytes]:
        async for chunk in request.stream():
            yield chunk
        received.set()

    digest = base64.b64decode(said[1]).hex()
    given: dict[str, Any] = {"attempt": attempt, "key": key, "after": after, "files": files, "digest": digest}
    try:
        work = service_of(request).compile_caches.publish(actor, chunks(), **given)
        await cancel_on_disconnect(request, work, received)
    except ClientDisconnect:
        raise InvalidInput("upload-broken", "The upload ended early.") from None
    return no_content()


@router.post(
    "/runtime/cache/use",
    status_code=204,
    responses=answers(None, 204, also=(409,)),
    openapi_extra=json_body(CacheUseBody),
)
async def report_cache_use(request: Request, actor: Caller) -> Json:
    """Record what a task made of its cache."""
    told: CacheUseBody = read_json(await request.body(), CacheUseBody)
    await service_of(request).compile_caches.used(actor, attempt=told.attempt, measured=told.measured())
    return no_content()


@router.get("/jobs/{job}/cache", responses=answers(JobCache))
async def read_job_cache(request: Request, actor: Caller, job: str) -> Json:
    """Read what the tasks of a job made of the cache: hits, bytes, seconds."""
    return Json(await service_of(request).compile_caches.of_job(actor, job))


@router.get("/caches", responses=answers(CacheList))
async def list_caches(
    request: Request,
    actor: Caller,
    everyone: Annotated[bool, Query(description="All users' bundles, for administrators.")] = False,
) -> Json:
    """List the bundles of compiled code that the caller published or shares with a group, last used first."""
    return Json(await service_of(request).compile_caches.list(actor, everyone=everyone))


@router.delete("/caches/{cache}", status_code=204, responses=answers(None, 204))
async def remove_cache(request: Request, actor: Caller, cache: str) -> Json:
    """Remove a bundle; tasks that start later compile anew."""
    await service_of(request).compile_caches.remove(actor, cache)
    return no_content()
