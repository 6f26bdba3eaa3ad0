"""Why: logs, events, code and terminals are no single JSON value; what is asked, and how it is read, is the same still.

Nothing here sends or receives: `Feed` is given pieces of an answer, however they came.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from corral.client.calls import Call, call, job_path

if TYPE_CHECKING:
    from corral.client.types import Event, Record


def log(
    ref: str,
    role: str = "",
    index: int = 0,
    *,
    follow: bool = False,
    tail: int | None = None,
    stream: str = "",
    attempt: str = "",
    offset: int = 0,
    prefix: bool = True,
) -> Call[bytes]:
    """What a task printed, in pieces as they come; without a role what all tasks printed, by line."""
    asked = {"follow": follow, "tail": None if tail is None else str(tail)}
    if role:
        query = {**asked, "stream": stream, "attempt": attempt, "offset": offset or ""}
        return call("GET", job_path(ref, "tasks", role, index, "logs"), query)
    return call("GET", job_path(ref, "logs"), {**asked, "prefix": "" if prefix else "false"})


def events(*, after: int | None = None, job: str = "") -> Call[bytes]:
    """The event stream, for a `Feed` to read."""
    query = {"after": "" if after is None else str(after), "job": job}
    return call("GET", "/events", query, accept="text/event-stream")


class Feed:
    """The events in an event stream; None stands for a sign of life, the first of which comes at once."""

    def __init__(self) -> None:
        self._rest = b""

    def read(self, piece: bytes) -> Iterator[Event | None]:
        """What the next piece completes; pieces end anywhere."""
        *whole, self._rest = (self._rest + piece).split(b"\n")
        for line in whole:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])
            elif line.startswith(b":"):
                yield None


def has_code(digest: str) -> Call[None]:
    """Whether an archive is on the server already: refused with NotFound when it is not."""
    return call("HEAD", f"/blobs/code/{digest}")


def put_code(size: int, digest: str = "") -> Call[Record]:
    """Upload a code archive (tar.gz) of `size` bytes, which follow; `digest`: its SHA-256 in hexadecimal."""
    said = f"sha-256=:{base64.b64encode(bytes.fromhex(digest)).decode()}:" if digest else ""
    return call("PUT", "/blobs/code", content_type="application/gzip", content_length=str(size), content_digest=said)


def enter(ref: str, role: str, index: int, command: Sequence[str], *, tty: bool = False) -> Call[bytes]:
    """Run a command inside a running task: the address of its WebSocket."""
    return call("GET", job_path(ref, "tasks", role, index, "exec"), {"cmd": list(command), "tty": tty})


def reach(ref: str, role: str, index: int, port: str) -> Call[bytes]:
    """Connect to a port of a running task: the address of its WebSocket."""
    return call("GET", job_path(ref, "tasks", role, index, "forward"), {"port": port})


def ports(ref: str, role: str, index: int) -> Call[Record]:
    """The ports of a running task, and where its notebook is behind one of them."""
    return call("GET", job_path(ref, "tasks", role, index, "ports"))
