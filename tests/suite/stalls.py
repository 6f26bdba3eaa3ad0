"""Let some syncs of the tested programs to the disk take seconds, as those of a disk that others keep busy do."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

MILLISECONDS: Final = 6000
"""Length of a stall; longer than a front waits for an answer of its database."""
_SOURCE: Final = Path(__file__).with_suffix(".c")


def environment(folder: Path, one_in: int, milliseconds: int = MILLISECONDS) -> dict[str, str]:
    """Return the variables with which a program and those that it starts let one sync in `one_in` stall.

    The library that does it is compiled into `folder`. Raises CalledProcessError if it cannot be.
    """
    library = folder / "stalls.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(_SOURCE), "-ldl"], check=True)
    folder.chmod(0o711)  # tasks of other users load it too
    return {"LD_PRELOAD": str(library), "SYNC_STALLS": f"{one_in}:{milliseconds}"}
