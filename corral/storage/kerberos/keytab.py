"""Read whose keys a keytab has, for messages that say what is wrong with it. The keys themselves are skipped."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 1 << 20
_VERSION: Final = b"\x05\x02"


class BadKeytab(Exception):
    """What is wrong with a keytab, as the end of a sentence that begins with its path."""


def principals_of(path: Path) -> tuple[str, ...]:
    """The principals of a keytab, each once, in its order.

    Raises BadKeytab when there is none, it may not be read, or it has another form.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise BadKeytab("is not there") from None
    except OSError as error:
        raise BadKeytab(f"cannot be read by this user: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise BadKeytab(f"has more than {MOST_BYTES >> 20} MiB, which no keytab has")
    if not data.startswith(_VERSION):
        raise BadKeytab("does not have the form of a keytab")
    found: dict[str, None] = {}
    at = len(_VERSION)
    try:
        while at + 4 <= len(data):
            (size,) = struct.unpack_from(">i", data, at)
            at += 4
            if size > 0:  # a negative size is that of a hole
                found[_principal(data[at : at + size])] = None
            if size == 0:
                break
            at += abs(size)
    except (struct.error, IndexError):
        raise BadKeytab("is damaged") from None
    return tuple(found)


def _principal(entry: bytes) -> str:
    """The principal of an entry: the number of its parts, the realm, and each part, all but the number with their length.

    Raises struct.error for an entry that ends before them.
    """
    (count,) = struct.unpack_from(">H", entry, 0)
    at, words = 2, []
    for _ in range(count + 1):
        (size,) = struct.unpack_from(">H", entry, at)
        (word,) = struct.unpack_from(f">{size}s", entry, at + 2)
        words.append(word.decode(errors="replace"))
        at += 2 + size
    return f"{'/'.join(words[1:])}@{words[0]}"
