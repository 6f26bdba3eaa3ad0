"""Why: OpenPAI's clients send forms or JSON, numbers as text or not; what comes is read alike, into bounded types."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from fastapi import Request

from corral.api.openpai.forms import MEDIA_TYPE, read_form
from corral.service.openpai_refusals import bad_parameters

Kind = TypeVar("Kind")


async def body_of(request: Request, kind: type[Kind]) -> Kind:
    """The body as a value of `kind`; what it does not know is passed over, as OpenPAI's own clients send more.

    Raises OpenPaiRefusal InvalidParametersError.
    """
    raw = await request.body()
    return read(read_form(raw) if is_form(request) else _json(raw), kind)


async def document_of(request: Request) -> bytes:
    """A body that is a JSON document; a form as the document that it stands for.

    Raises OpenPaiRefusal InvalidParametersError for a form that cannot be read.
    """
    raw = await request.body()
    return msgspec.json.encode(read_form(raw)) if is_form(request) else raw


def is_form(request: Request) -> bool:
    """Whether the body is a form."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == MEDIA_TYPE


def read(value: Any, kind: type[Kind]) -> Kind:
    """`value` as a value of `kind`, whose numbers and truths may be text.

    Raises OpenPaiRefusal InvalidParametersError.
    """
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        raise bad_parameters(f"{error}.") from None


def _json(raw: bytes) -> Any:
    if not raw.strip():
        return {}
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise bad_parameters("The body is not JSON.") from None
