"""Send files to a host, as a tar archive that is made while it is sent."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from corral.kernel.errors import Conflict

_PIECE: Final = 1024 * 1024
RECEIVED, PACKAGES = "received", "packages"
"""The folders below /var/lib/corral/deploy that take files."""


def receiver(folder: str) -> str:
    """The command that takes an archive into one of those folders, in place of what was there.

    It waits for a step that still runs there, also of an `up` that was killed: that may read the files from before.
    """
    return (
        f"sh -c 'd=/var/lib/corral/deploy/{folder}; umask 022; exec 9>/run/corral-deploy.lock || exit; "
        "flock -w 300 9 || { echo corral: busy; exit 1; }; rm -rf $d && mkdir -p $d && "
        "exec tar --no-same-owner -xf - -C $d' 2>&1"
    )


def archive_of(files: Iterable[tuple[Path, str]]) -> Iterator[bytes]:
    """The pieces of an archive with these files under these names, owned by nobody. Raises Conflict where one changes."""
    for path, name in files:
        try:
            opened = path.open("rb")
        except OSError as error:
            raise Conflict("changed-file", f"{path} cannot be read any more: {error.strerror}.") from None
        with opened:
            member = tarfile.TarInfo(name)
            member.size, member.mode = os.fstat(opened.fileno()).st_size, 0o644
            yield member.tobuf(tarfile.GNU_FORMAT)
            left = member.size
            while left:
                piece = opened.read(min(left, _PIECE))
                if not piece:
                    raise Conflict("changed-file", f"{path} was changed while it was sent.")
                left -= len(piece)
                yield piece
        yield b"\0" * (-member.size % tarfile.BLOCKSIZE)
    yield b"\0" * (2 * tarfile.BLOCKSIZE)
