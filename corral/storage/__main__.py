"""Stage data in a separate process, so that a task's runtime needs neither storage libraries nor credentials.

`python -m corral.storage stage [--storage] SOURCE DESTINATION`: each is a path or a URI; exits with 0 when everything
is copied. With `--storage` a missing source counts as empty, and files keep their modification time, so that unchanged
files are not copied back.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from corral.kernel.errors import CorralError, NotFound
from corral.storage.staging import Progress, stage


def main(argv: Sequence[str]) -> int:
    """Stage as the arguments say; returns the exit code."""
    storage = argv[1:2] == ["--storage"]
    places = argv[2:] if storage else argv[1:]
    if argv[:1] != ["stage"] or len(places) != 2:
        print("usage: python -m corral.storage stage [--storage] SOURCE DESTINATION", file=sys.stderr)
        return 2
    source, destination = places
    try:
        done = stage(source, destination, Progress(sys.stderr), keep_times=storage)
    except NotFound as error:
        if not storage:
            print(f"corral: {error}", file=sys.stderr)
            return 1
        print(f"corral: {source} is not there yet", file=sys.stderr)
        return 0
    except CorralError as error:
        print(f"corral: {error}", file=sys.stderr)
        return 1
    print(f"corral: staged {done.files} files, {done.bytes} bytes ({done.kept} already there)", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
