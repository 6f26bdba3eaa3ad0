"""Names that people choose and that stand in addresses."""

from __future__ import annotations


def is_path_name(name: str, longest: int) -> bool:
    """Whether a name can stand in an address as one part of its path.

    Browsers and clients resolve `.` and `..` before they send a request, also where they are encoded.
    """
    if not 0 < len(name) <= longest or name in (".", ".."):
        return False
    return name == name.strip() and name.isprintable() and "/" not in name
