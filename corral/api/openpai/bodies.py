"""Why: OpenPAI's clients send forms or JSON, numbers as text or not; what comes is read alike, into bounded types."""

from __future__ import annotations

from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl

import msgspec
from fastapi import Request

from corral.service.openpai_refusals import bad_parameters

Kind = TypeVar("Kind")
_FORM: Final = "application/x-www-form-urlencoded"
_MOST_FIELDS: Final = 100


async def body_of(request: Request, kind: type[Kind]) -> Kind:
    """The body as a value of `kind`; what it does not know is passed over, as OpenPAI's own clients send more.

    Raises OpenPaiRefusal InvalidParametersError.
    """
    raw = await request.body()
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return read(_form(raw) if media == _FORM else _json(raw), kind)


def read(value: Any, kind: type[Kind]) -> Kind:
    """`value` as a value of `kind`, whose numbers and truths may be text.

    Raises OpenPaiRefusal InvalidParametersError.
    """
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        raise bad_parameters(f"{error}.") from None


def _form(raw: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(raw.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise bad_parameters("The body is not a form.") from None
    return dict(pairs)


def _json(raw: bytes) -> Any:
    if not raw.strip():
        return {}
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise bad_parameters("The body is not JSON.") from None
