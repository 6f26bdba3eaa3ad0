"""Check headers of tar entries before the standard library trusts them.

`tarfile` has four weaknesses. It reads a long name or an extended header of any length into memory, and follows
consecutive ones by recursion. It goes backwards for a negative size, and takes an unreadable header for the archive's
end.
"""

from __future__ import annotations

import tarfile
from typing import Any

HEADER_BYTES = 64 * 1024
"""The most bytes of a long name or an extended header, and of all global headers together."""
_NESTING = 8
"""The most extended headers of one entry."""
_LONG = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_EXTENDED = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)


class BadHeader(ValueError):
    """A malformed or malicious header; the message says what is wrong with it."""


class CheckedInfo(tarfile.TarInfo):
    """An entry of a `TarFile` whose headers are within the limits.

    Reading the next entry raises BadHeader.
    """

    @classmethod
    def frombuf(cls, buf: Any, encoding: str | None, errors: str) -> CheckedInfo:
        """Parse an entry from the 512 bytes of its header."""
        try:
            return super().frombuf(buf, encoding, errors)  # type: ignore[arg-type]
        except (tarfile.InvalidHeaderError, tarfile.TruncatedHeaderError) as error:  # type: ignore[attr-defined]
            raise BadHeader(f"a header cannot be read ({error})") from None

    def _proc_member(self, archive: Any) -> tarfile.TarInfo:
        if self.size < 0:
            raise BadHeader("an entry has a negative size")
        if self.type == tarfile.GNUTYPE_SPARSE:
            raise BadHeader(f"{self.name!r} is a sparse file")
        if self.type not in (*_LONG, *_EXTENDED):
            return self._sound(super()._proc_member(archive))  # type: ignore[misc]
        if self.size > HEADER_BYTES:
            raise BadHeader(f"a long name or an extended header has more than {HEADER_BYTES} bytes")
        if self.type == tarfile.XGLTYPE:
            archive.global_bytes = getattr(archive, "global_bytes", 0) + self.size
            if archive.global_bytes > HEADER_BYTES:
                raise BadHeader(f"the global headers have more than {HEADER_BYTES} bytes")
        depth = getattr(archive, "header_depth", 0) + 1
        if depth > _NESTING:
            raise BadHeader(f"an entry has more than {_NESTING} extended headers")
        archive.header_depth = depth
        entry = super()._proc_member(archive)  # type: ignore[misc]
        archive.header_depth = depth - 1
        return self._sound(entry)

    @staticmethod
    def _sound(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        said = entry.pax_headers.get("size", "0")
        if entry.size < 0 or not (said.isascii() and said.isdigit()):
            raise BadHeader("an entry has a size that is none")
        if any(name.startswith("GNU.sparse") for name in entry.pax_headers):
            raise BadHeader(f"{entry.name!r} is a sparse file")
        return entry
