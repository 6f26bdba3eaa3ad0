"""Write and read the plainest messages of HTTP/1.1 by one expression each; all others are h11's.

A page asks for tens of small files. What is told apart here is strict: a message that fits has one reading only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from corral.api.services.headers import Header

_NAME: Final = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_VALUE: Final = rb"[\t\x20-\x7e\x80-\xff]*"
_SEEN: Final = rb"[\x21-\x7e\x80-\xff]"
_ASKED: Final = rb"(?:" + _SEEN + rb"(?:" + _VALUE + _SEEN + rb")?)?"
"""A value without blanks around it: h11 sends no other, and must follow the exchange where the answer is not plain."""
_REQUEST: Final = re.compile(rb"[A-Z]+ [\x21-\x7e]+ HTTP/1\.1\r\n(?:" + _NAME + rb": " + _ASKED + rb"\r\n)+\r\n")
_ANSWER: Final = re.compile(
    rb"HTTP/1\.1 (?P<status>[2-5][0-9][0-9])(?: " + _VALUE + rb")?\r\n"
    rb"(?P<headers>(?:" + _NAME + rb":" + _VALUE + rb"\r\n)+)\r\n"
)
_LENGTH: Final = re.compile(rb"[0-9]{1,9}")
_WITHOUT_BODY: Final = frozenset({204, 205, 304})
_KEPT: Final = frozenset({b"keep-alive"})
_FRAMES: Final = frozenset({b"transfer-encoding", b"upgrade", b"trailer"})


class PlainAnswer(NamedTuple):
    """A whole answer with its body, after which the connection can carry another request."""

    status: int
    headers: list[Header]
    body: bytes


def plain_request(method: str, target: bytes, headers: Sequence[Header]) -> bytes | None:
    """The bytes of a request without a body; None where h11 must say whether it may be sent."""
    lines = [b"%b: %b\r\n" % each for each in headers if each[0] != b"host"]
    host = b"".join([b"%b: %b\r\n" % each for each in headers if each[0] == b"host"])
    written = b"".join([method.encode("latin-1"), b" ", target, b" HTTP/1.1\r\n", host, *lines, b"\r\n"])
    if written.count(b"\r\n") != len(headers) + 2 or any(b":" in name for name, _ in headers):
        return None  # a part would be read as more than one
    return written if _REQUEST.fullmatch(written) else None


def plain_answer(data: bytes, most_bytes: int, most_headers: int) -> PlainAnswer | None:
    """The answer to a request other than `HEAD` that these bytes are, no more and no less.

    None for all that is not so plain: framed otherwise, in pieces, of other versions, interim, ending the connection, or
    wrong.
    """
    end = data.find(b"\r\n\r\n", 0, most_bytes) + 4
    if end < 4:
        return None
    found = _ANSWER.fullmatch(data, 0, end)
    if found is None:
        return None
    status = int(found["status"])
    if status in _WITHOUT_BODY:
        return None
    headers: list[Header] = []
    length = b""
    for line in found["headers"].split(b"\r\n")[:-1]:
        name, _, value = line.partition(b":")
        name, value = name.lower(), value.strip(b" \t")
        if name == b"content-length":
            if length or not _LENGTH.fullmatch(value):
                return None
            length = value
        elif name in _FRAMES or (name == b"connection" and value.lower() not in _KEPT):
            return None
        headers.append((name, value))
    if not length or len(headers) > most_headers or len(data) - end != int(length):
        return None
    return PlainAnswer(status, headers, data[end:])
