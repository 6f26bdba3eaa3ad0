"""Decode request bodies of OpenPAI's clients, forms or JSON, into bounded types.

Numbers and booleans may be text, as some clients send them.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from fastapi import Request

from corral.compat.openpai.routes.form_bodies import MEDIA_TYPE, read_form
from corral.compat.openpai.service.errors import bad_parameters

Kind = TypeVar("Kind")


async def body_of(request: Request, kind: type[Kind]) -> Kind:
    """Decode the body as a value of `kind`; ignore unknown fields, because OpenPAI's own clients send more.

    Raises OpenPaiRefusal InvalidParametersError.
    """
    raw = await request.body()
    return read(read_form(raw) if is_form(request) else _json(raw), kind)


async def document_of(request: Request) -> bytes:
    """Return a body as a JSON document; a form is converted.

    Raises OpenPaiRefusal InvalidParametersError for a malformed form.
    """
    raw = await request.body()
    return msgspec.json.encode(read_form(raw)) if is_form(request) else raw


def is_form(request: Request) -> bool:
    """Return whether the body is a form."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == MEDIA_TYPE


def read(value: Any, kind: type[Kind]) -> Kind:
    """Convert `value` to `kind`, whose numbers and booleans may be text.

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
