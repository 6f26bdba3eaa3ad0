"""The mail addresses of an administrator's settings and files."""

from __future__ import annotations

import re
from typing import Final

MOST_ADDRESSES: Final = 20
_ADDRESS: Final = re.compile(r"[^\s@,<>\"]{1,64}@[^\s@,<>\"]{1,190}")


def read_addresses(text: str) -> tuple[str, ...]:
    """Read mail addresses separated by commas, each once; raises ValueError naming the first that is none."""
    found = tuple(dict.fromkeys(each.strip() for each in text.split(",") if each.strip()))
    if len(found) > MOST_ADDRESSES:
        raise ValueError(f"at most {MOST_ADDRESSES} addresses, got {len(found)}")
    for each in found:
        if not _ADDRESS.fullmatch(each):
            raise ValueError(f"{each[:50]!r} is no mail address")
    return found
