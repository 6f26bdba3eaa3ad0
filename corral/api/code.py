"""Routes to upload code archives, addressed by their SHA-256, so that an archive is sent only once."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Header, Path, Request
from starlette.requests import ClientDisconnect

from corral.api.authentication import Caller, service_of
from corral.api.client_disconnect import cancel_on_disconnect
from corral.api.json_responses import Json, answers
from corral.api.routers import router_of
from corral.kernel.errors import InvalidInput, NotFound
from corral.model.views import Uploaded

router = router_of("code")
Digest = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$", description="The SHA-256 of the archive.")]
ContentDigest = Annotated[
    str,
    Header(
        description="The archive's SHA-256, as `sha-256=:BASE64:` ([RFC 9530](https://www.rfc-editor.org/rfc/rfc9530)). "
        "An archive that the account keeps already is then taken again, however little more the account may keep."
    ),
]
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


@router.put("/blobs/code", responses=answers(Uploaded, also=(413,)), openapi_extra=_ARCHIVE)
async def put_code(request: Request, actor: Caller, content_digest: ContentDigest = "") -> Json:
    """Store a code archive, streamed to disk and never held in memory."""
    declared = request.headers.get("content-length", "")
    size = int(declared) if declared.isdigit() else None
    said = _SHA_256.search(content_digest)
    digest = base64.b64decode(said[1]).hex() if said else ""
    received = asyncio.Event()

    async def chunks() -> AsyncIterator[bytes]:
        async for chunk in request.stream():
            yield chunk
        received.set()

    try:
        work = service_of(request).code_archives.put(actor, chunks(), declared=size, digest=digest)
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
