"""Stage data in a separate process, so that a task's runtime needs neither storage libraries nor credentials.

`python -m corral.storage stage [--storage] SOURCE DESTINATION`: each is a path or a URI; exits with 0 when everything
is copied. With `--storage` a missing source counts as empty, and files keep their modification time, so that unchanged
files are not copied back. With `--events SECONDS` what is new in the event files of SOURCE is appended to copies in the
folder DESTINATION; files that have not changed for so many seconds are not begun. It exits with 3 when nothing more is
copied, because the copies are as large as they may be. Staging exits with 4 when no storage answers for ten
minutes; calls that move blocks of an object store are left to their library, which gives up sooner.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from corral.kernel.errors import CorralError, NotFound
from corral.storage.staging import Progress, stage

SILENT_SECONDS: Final = 600.0
"""Seconds without an answer of any storage after which staging is given up: hdfs-native waits for one without end, and the
others repeat calls for some minutes, as during a fail-over.
"""
_SAID_SECONDS: Final = 30.0
"""Seconds without an answer after which the log says so."""
SILENT_CODE: Final = 4
"""The exit code then."""


def main(argv: Sequence[str]) -> int:
    """Stage as the arguments say; returns the exit code."""
    if argv[:2] == ["stage", "--events"] and len(argv) == 5:
        return _mirror(argv[2], argv[3], argv[4])
    storage = argv[1:2] == ["--storage"]
    places = argv[2:] if storage else argv[1:]
    if argv[:1] != ["stage"] or len(places) != 2:
        print("usage: python -m corral.storage stage [--storage] SOURCE DESTINATION", file=sys.stderr)
        return 2
    source, destination = places
    progress = Progress(sys.stderr)
    threading.Thread(target=_end_in_silence, args=(progress, source, destination), daemon=True).start()
    try:
        done = stage(source, destination, progress, keep_times=storage)
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


def _end_in_silence(progress: Progress, source: str, destination: str) -> None:
    """End this process when no storage has answered for too long: a thread that waits for one cannot be ended."""
    said = False
    while (silent := progress.silent_seconds) < SILENT_SECONDS:
        if silent < _SAID_SECONDS:
            said = False
        elif not said:
            said = True
            words = f"{source} to {destination}: no storage has answered for {silent:.0f} s"
            print(f"corral: staging {words}; it is given up after {SILENT_SECONDS:.0f} s", file=sys.stderr, flush=True)
        time.sleep(min(1.0, SILENT_SECONDS / 10))
    print(f"corral: staging is given up: no storage answered for {SILENT_SECONDS:.0f} s", file=sys.stderr, flush=True)
    os._exit(SILENT_CODE)


def _mirror(seconds: str, source: str, destination: str) -> int:
    """Copy what is new in event files; returns the exit code."""
    from corral.runtime.remote_events import FULL_CODE  # staging does without these
    from corral.storage.event_mirror import MOST_KEPT, is_full, mirror

    try:
        mirror(source, Path(destination), time.time() - float(seconds))
    except CorralError as error:
        print(f"corral: {error}", file=sys.stderr)
        return 1
    if is_full(Path(destination)):
        said = f"{source} has {MOST_KEPT >> 20} MiB of event files; what is written after them is left out"
        print(f"corral: {said}.", file=sys.stderr)
        return FULL_CODE
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
