"""Decode `application/x-www-form-urlencoded` bodies with nested keys, by the rules of OpenPAI's server.

`a[b]=1` is a mapping; `a[]=1`, `a[0]=1` and a repeated key are a list. A form beyond the bounds is refused, so that no
accepted field is dropped.
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import parse_qsl

from corral.compat.openpai.service.errors import OpenPaiRefusal, bad_parameters

MEDIA_TYPE: Final = "application/x-www-form-urlencoded"
MOST_BYTES: Final = 100 * 1024
"""Bytes of a form, as in OpenPAI."""
MOST_FIELDS: Final = 1000
"""Fields of a form, as in OpenPAI."""
DEEPEST: Final = 5
"""Levels of keys below the first."""
_MOST_INDEX: Final = 20
"""The highest index of a list; a higher number is the key of a mapping."""
_KEY: Final = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])*)")
_INNER: Final = re.compile(r"\[([^\[\]]*)\]")


class _Node:
    """The values given for one key, or the nodes nested below it by key."""

    __slots__ = ("inner", "values")

    def __init__(self) -> None:
        self.values: list[str] = []
        self.inner: dict[str, _Node] = {}


def read_form(raw: bytes) -> dict[str, Any]:
    """Return the fields of a form, nested.

    Raises OpenPaiRefusal for a malformed or too large form, and for a key with both a value and nested fields.
    """
    if len(raw) > MOST_BYTES:
        message = f"A form may have {MOST_BYTES // 1024} KiB at most; send JSON instead."
        raise OpenPaiRefusal("InvalidParametersError", message, status=413)
    if raw.count(b"&") >= MOST_FIELDS:
        raise OpenPaiRefusal("InvalidParametersError", f"A form may have {MOST_FIELDS} fields at most.", status=413)
    try:
        pairs = parse_qsl(raw.decode(), keep_blank_values=True, errors="strict")
    except ValueError:
        raise bad_parameters("The body is not a form.") from None
    top = _Node()
    for key, value in pairs:
        node = top
        for step in _steps(key):
            node = node.inner.setdefault(step, _Node())
        node.values.append(value)
    return {key: _value(node, key) for key, node in top.inner.items()}


def _steps(key: str) -> list[str]:
    """Split a key into steps, outermost first; a key with unbalanced brackets is one step."""
    found = _KEY.fullmatch(key)
    if found is None:
        return [key]
    steps = [found[1], *_INNER.findall(found[2])]
    if len(steps) > DEEPEST + 1:
        raise bad_parameters(f"The field {key[:60]} is nested more than {DEEPEST} deep.")
    return steps


def _value(node: _Node, name: str) -> Any:
    if not node.inner:
        return node.values[0] if len(node.values) == 1 else list(node.values)
    unnamed = node.inner.get("")
    if node.values or (unnamed is not None and unnamed.inner):
        raise bad_parameters(f"The field {name[:60]} has both a value and fields of its own.")
    told = {key: _value(inner, f"{name}[{key}]") for key, inner in node.inner.items() if key}
    listed = [] if unnamed is None else unnamed.values
    if all(_is_index(key) for key in told):
        return [told[key] for key in sorted(told, key=int)] + listed
    if listed:
        raise bad_parameters(f"The field {name[:60]} is both a list and a mapping.")
    return told


def _is_index(key: str) -> bool:
    return key.isascii() and key.isdigit() and len(key) <= 2 and int(key) <= _MOST_INDEX
