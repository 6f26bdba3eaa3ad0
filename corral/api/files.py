"""Answers with the bytes of users' files, as a download or as a picture; no browser runs them as a page of the portal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import Query
from starlette.responses import Response

from corral.api.json_responses import answers
from corral.api.stream_limits import EndingResponse

Path = Annotated[str, Query(max_length=4096, description="A path in the folder; empty is the folder itself.")]
AfterName = Annotated[str, Query(max_length=2000, description="The `next` of the page before.")]
"""Bounds a page cursor in characters; a name of 1,024 bytes, which S3 allows, fits."""
_BYTES: Final = "application/octet-stream"
_HARMLESS: Final = {"Content-Security-Policy": "sandbox; default-src 'none'", "Cache-Control": "no-store"}
"""Headers that keep a browser from running a file as a page of the portal."""


def _answers(description: str, *kinds: str) -> dict[int | str, dict[str, Any]]:
    body = {"schema": {"type": "string", "format": "binary"}}
    return answers(None, 200, text=description, also=(409,)) | {
        200: {"description": description, "content": dict.fromkeys(kinds, body)}
    }


FILE_ANSWERS: Final = _answers("The bytes of the file", _BYTES)
PICTURE_ANSWERS: Final = _answers("The picture", "image/png", "image/jpeg", "image/gif", "image/webp")


def file_response(path: str, size: int, pieces: AsyncIterator[bytes]) -> Response:
    """Return a file as a download."""
    name = path.rstrip("/").rpartition("/")[2]
    disposition = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    headers = {"Content-Disposition": disposition, "Content-Length": str(size), **_HARMLESS}
    return EndingResponse(pieces, cut=b"", media_type=_BYTES, headers=headers)


def picture_response(kind: str, size: int, pieces: AsyncIterator[bytes]) -> Response:
    """Return a picture of a media type that its bytes have shown."""
    headers = {"Content-Length": str(size), **_HARMLESS}
    return EndingResponse(pieces, cut=b"", media_type=kind, headers=headers)
