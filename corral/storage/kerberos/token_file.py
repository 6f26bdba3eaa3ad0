"""Find the delegation token for a NameNode among those that YARN gives a container (`HADOOP_TOKEN_FILE_LOCATION`).

The file is Hadoop's `Credentials` in its form of Writables: `HDTS`, a version, and for each token an alias, an identifier,
a password, a kind and a service, each with its length before it. WebHDFS takes a token as base64 of the same bytes.
"""

from __future__ import annotations

import base64
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from corral.kernel.errors import Unavailable

VARIABLE: Final = "HADOOP_TOKEN_FILE_LOCATION"
_MOST_BYTES: Final = 1 << 20
_MAGIC: Final = b"HDTS\x00"
"""With the version of the form that YARN writes."""
_KIND: Final = b"HDFS_DELEGATION_TOKEN"


class Token(NamedTuple):
    """A token for a NameNode."""

    service: str
    """ADDRESS:PORT of the NameNode's own protocol."""
    text: str
    """The token as it is sent."""


def token_for(host: str) -> str:
    """The token for the NameNode on a host; "" without one. A token is given to no other host than its own.

    Raises Unavailable for a file of another form.
    """
    file = os.environ.get(VARIABLE, "")
    if not file:
        return ""
    tokens = _read(Path(file))
    if not tokens:
        return ""
    try:
        here = {host, *(str(each[4][0]) for each in socket.getaddrinfo(host, None))}
    except OSError:
        here = {host}
    return next((each.text for each in tokens if each.service.rpartition(":")[0].strip("[]") in here), "")


def _read(file: Path) -> list[Token]:
    try:
        with file.open("rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
    except OSError as error:
        raise Unavailable("kerberos", f"The tokens of {VARIABLE} cannot be read: {error.strerror}.") from None
    try:
        if len(data) > _MOST_BYTES or not data.startswith(_MAGIC):
            raise ValueError
        return list(tokens_of(data[len(_MAGIC) :]))
    except (ValueError, IndexError):
        raise Unavailable("kerberos", f"The file of {VARIABLE} does not list tokens as Hadoop does.") from None


def tokens_of(data: bytes) -> Iterator[Token]:
    """The NameNodes' tokens of a list. Raises ValueError or IndexError where it is cut off."""
    count, at = _number(data, 0)
    for _ in range(count):
        _, begin = _text(data, at)
        _, after = _text(data, begin)
        _, after = _text(data, after)
        kind, after = _text(data, after)
        service, at = _text(data, after)
        if kind == _KIND:
            sent = base64.urlsafe_b64encode(data[begin:at]).decode().rstrip("=")
            yield Token(service.decode(errors="replace"), sent)


def _text(data: bytes, at: int) -> tuple[bytes, int]:
    """The bytes at a place, which have their length before them, and the place after them."""
    size, at = _number(data, at)
    if size > len(data) - at:
        raise ValueError("it ends before its text")
    return data[at : at + size], at + size


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of Hadoop's variable length that is not negative, and the place after it."""
    first = data[at] if data[at] < 128 else data[at] - 256
    if first >= -112:
        if first < 0:
            raise ValueError("a size is negative")
        return first, at + 1
    size = -112 - first
    if size > 8 or len(data) < at + 1 + size:
        raise ValueError("a size is no size")
    return int.from_bytes(data[at + 1 : at + 1 + size], "big"), at + 1 + size
