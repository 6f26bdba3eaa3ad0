"""Routes to upload code archives, addressed by their SHA-256, so that an archive is sent only once.

An upload that may break off goes to an address that follows from the digest, and in the header fields of the IETF's
resumable uploads (docs/decisions/0014-resumable-uploads.md).
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncIterator
from typing import Annotated, Final

from fastapi import Header, Path, Request, Response
from starlette.requests import ClientDisconnect

from corral.api.authentication import Caller, service_of
from corral.api.client_disconnect import cancel_on_disconnect
from corral.api.json_responses import Json, answers, no_content
from corral.api.routers import router_of
from corral.kernel.errors import InvalidInput, NotFound
from corral.model.uploads import Uploaded, UploadProgress
from corral.storage.partial_uploads import KEPT_SECONDS

router = router_of("code")
Digest = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$", description="The SHA-256 of the archive.")]
ContentDigest = Annotated[
    str,
    Header(
        description="The archive's SHA-256, as `sha-256=:BASE64:` ([RFC 9530](https://www.rfc-editor.org/rfc/rfc9530)). "
        "An archive that the account keeps already is then taken again, however little more the account may keep."
    ),
]
UploadOffset = Annotated[
    int, Header(ge=0, le=10**15, description="The bytes of the archive before the first one of the body.")
]
UploadComplete = Annotated[
    str, Header(pattern=r"^\?[01]$", description="`?1` if the archive ends with this body, `?0` if more follows.")
]
PARTIAL: Final = "application/partial-upload"
"""The type of a body that continues an upload."""
_PARTS: Final = (PARTIAL, "application/octet-stream")
_SHA_256 = re.compile(r"(?:^|,)[ \t]*sha-256=:([A-Za-z0-9+/]{43}=):")

_ARCHIVE = {
    "requestBody": {
        "required": True,
        "description": "A tar.gz archive of a folder.",
        "content": {
            "application/gzip": {"schema": {"type": "string", "format": "binary"}},
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
_PART = {
    "requestBody": {
        "required": True,
        "description": "The next bytes of the archive.",
        "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in _PARTS},
    }
}


@router.put("/blobs/code", responses=answers(Uploaded, also=(413,)), openapi_extra=_ARCHIVE)
async def put_code(request: Request, actor: Caller, content_digest: ContentDigest = "") -> Json:
    """Store a code archive, streamed to disk and never held in memory."""
    declared = request.headers.get("content-length", "")
    size = int(declared) if declared.isdigit() else None
    said = _SHA_256.search(content_digest)
    digest = base64.b64decode(said[1]).hex() if said else ""
    received = asyncio.Event()
    try:
        work = service_of(request).code_archives.put(actor, _chunks(request, received), declared=size, digest=digest)
        return Json(await cancel_on_disconnect(request, work, received))
    except ClientDisconnect:
        raise InvalidInput("upload-broken", "The upload ended early; send it again.") from None


@router.head("/blobs/code/{digest}", responses=answers(None, text="It is there"))
async def has_code(request: Request, actor: Caller, digest: Digest) -> Json:
    """Report whether an archive is stored already; its size is in `X-Corral-Size`."""
    size = await service_of(request).code_archives.size(actor, digest)
    if size is None:
        raise NotFound("no-such-code", "This code has not been uploaded.")
    return Json(None, headers={"X-Corral-Size": str(size)})


@router.head("/blobs/uploads/{digest}", responses=answers(None, 204, text="The header fields say how far it is"))
async def upload_progress(request: Request, actor: Caller, digest: Digest) -> Response:
    """Report how far an upload is: `Upload-Offset` has its bytes, `Upload-Complete` is `?1` when it is stored."""
    return _with_progress(request, no_content(), await service_of(request).code_archives.progress(actor, digest))


@router.patch("/blobs/uploads/{digest}", responses=answers(UploadProgress, also=(409, 413)), openapi_extra=_PART)
async def append_to_upload(
    request: Request, actor: Caller, digest: Digest, upload_offset: UploadOffset, upload_complete: UploadComplete
) -> Response:
    """Add bytes to an upload, which the first ones begin; what arrives before the connection breaks is kept."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() not in _PARTS:
        raise InvalidInput("not-a-part", f"The next bytes of an upload are sent as {PARTIAL}.")
    declared = request.headers.get("content-length", "")
    if not declared.isdigit():
        raise InvalidInput("no-length", "An upload says in Content-Length how many bytes it adds.")
    received = asyncio.Event()
    work = service_of(request).code_archives.append(
        actor,
        digest,
        _chunks(request, received),
        offset=upload_offset,
        declared=int(declared),
        last=upload_complete == "?1",
    )
    try:
        progress = await cancel_on_disconnect(request, work, received)
    except ClientDisconnect:
        raise InvalidInput("upload-broken", "The upload ended early; go on with it.") from None
    return _with_progress(request, Json(progress), progress)


@router.delete("/blobs/uploads/{digest}", responses=answers(None, 204, text="Its bytes are deleted", also=(409,)))
async def cancel_upload(request: Request, actor: Caller, digest: Digest) -> Response:
    """Delete what the server has of an upload."""
    await service_of(request).code_archives.cancel(actor, digest)
    return no_content()


async def _chunks(request: Request, received: asyncio.Event) -> AsyncIterator[bytes]:
    """Yield the body as it arrives; set `received` at its end."""
    async for chunk in request.stream():
        yield chunk
    received.set()


def _with_progress(request: Request, response: Response, progress: UploadProgress) -> Response:
    response.headers["Upload-Offset"] = str(progress.size)
    response.headers["Upload-Complete"] = f"?{int(progress.complete)}"
    most = service_of(request).code_archives.most_bytes
    response.headers["Upload-Limit"] = f"max-size={most}, max-age={KEPT_SECONDS:.0f}"
    return response
