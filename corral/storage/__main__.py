"""Why: data is moved by a process of its own, so that a task's runtime needs no library and no credentials in it.

`python -m corral.storage stage SOURCE DESTINATION`: each is a path or a URI; answers 0 when all is there.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from corral.kernel.errors import CorralError
from corral.storage.stage import Progress, stage


def main(argv: Sequence[str]) -> int:
    """Stage as told; the exit code of the process."""
    if len(argv) != 3 or argv[0] != "stage":
        print("usage: python -m corral.storage stage SOURCE DESTINATION", file=sys.stderr)
        return 2
    try:
        done = stage(argv[1], argv[2], Progress(sys.stderr))
    except CorralError as error:
        print(f"corral: {error}", file=sys.stderr)
        return 1
    print(f"corral: staged {done.files} files, {done.bytes} bytes ({done.kept} already there)", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
