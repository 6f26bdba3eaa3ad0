"""Why: data is moved by a process of its own, so that a task's runtime needs no library and no credentials in it.

`python -m corral.storage stage [--storage] SOURCE DESTINATION`: each is a path or a URI; answers 0 when all is there. With
`--storage` a source that is not there is as good as an empty one, and files keep the time of their last change, so that
what nobody changed is not copied back.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from corral.kernel.errors import CorralError, NotFound
from corral.storage.stage import Progress, stage


def main(argv: Sequence[str]) -> int:
    """Stage as told; the exit code of the process."""
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
