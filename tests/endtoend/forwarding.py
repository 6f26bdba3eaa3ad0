"""Check a port forward to a task, in the same way for every engine."""

from __future__ import annotations

import contextlib
import subprocess
import urllib.request
from collections.abc import Iterator

from tests.endtoend.platform import CORRAL, Platform


@contextlib.contextmanager
def forwarded(server: Platform, *words: str) -> Iterator[str]:
    """The address that `corral forward WORDS` prints, while it runs."""
    command = [CORRAL, "forward", *words]
    with subprocess.Popen(
        command, env=server.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        address = process.stdout.readline().strip()
        try:
            assert address, process.stderr.read()
            yield address
        finally:
            process.terminate()


def read(address: str) -> bytes:
    """The body of a GET."""
    with urllib.request.urlopen(address, timeout=30) as answer:
        return bytes(answer.read())
