"""A log on a full disk loses its lines, but the process that writes it goes on."""

from __future__ import annotations

import io
import json
import subprocess
import sys

from corral.logs import Unbreakable

CHATTY = """
import structlog
from corral import logs
logs.configure("info")
for number in range(1000):
    structlog.get_logger("test").warning("a line", number=number)
print("went on")
"""


class Disk(io.StringIO):
    """A file that accepts nothing while its disk is full."""

    full = False

    def write(self, text: str) -> int:
        if self.full:
            raise OSError(28, "No space left on device")
        return super().write(text)


def test_lines_that_could_not_be_written_are_counted_once_there_is_space() -> None:
    disk = Disk()
    log = Unbreakable(disk)
    log.write("one\n")
    disk.full = True
    for _ in range(3):
        log.write("lost\n")
    disk.full = False
    log.write("two\n")
    log.write("three\n")
    first, note, *rest = disk.getvalue().splitlines()
    assert (first, rest) == ("one", ["two", "three"])
    assert json.loads(note) == {"event": "up to 3 lines of this log could not be written", "level": "warning"}


def test_a_process_outlives_a_log_that_takes_nothing() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", CHATTY], stdout=subprocess.PIPE, stderr=full, timeout=60)
    assert done.stdout == b"went on\n"
