"""Calls for logs, events, code and terminals: their answers are not a single JSON value.

Nothing here sends or receives: `Feed` parses pieces of an answer, from any client.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from corral.client.calls import Call, call, job_path

if TYPE_CHECKING:
    from corral.client.schema import (
        JobDetail,
        OpenedService,
        PortsView,
        ServicesView,
        SshAccessView,
        Uploaded,
        UploadProgress,
    )


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
    """Yield the output of a task in pieces as they arrive; without a role, the output of all tasks, by line."""
    asked = {"follow": follow, "tail": None if tail is None else str(tail)}
    if role:
        query = {**asked, "stream": stream, "attempt": attempt, "offset": offset or ""}
        return call("GET", job_path(ref, "tasks", role, index, "logs"), query)
    return call("GET", job_path(ref, "logs"), {**asked, "prefix": "" if prefix else "false"})


def events(*, after: int | None = None, job: str = "") -> Call[bytes]:
    """Return the event stream, to be parsed by a `Feed`."""
    query = {"after": "" if after is None else str(after), "job": job}
    return call("GET", "/events", query, accept="text/event-stream")


class Feed:
    """Parses an event stream; None is a heartbeat, and the first one comes at once."""

    def __init__(self) -> None:
        self._rest = b""

    def read(self, piece: bytes) -> Iterator[Any]:
        """Yield the data of the events that the next piece completes; pieces may end anywhere."""
        *whole, self._rest = (self._rest + piece).split(b"\n")
        for line in whole:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])
            elif line.startswith(b":"):
                yield None


def has_code(digest: str) -> Call[None]:
    """Check that the server has an archive; the answer is NotFound if it does not."""
    return call("HEAD", f"/blobs/code/{digest}")


def put_code(size: int, digest: str = "") -> Call[Uploaded]:
    """Upload a code archive (tar.gz) of `size` bytes, sent separately; `digest` is its SHA-256 in hexadecimal."""
    said = f"sha-256=:{base64.b64encode(bytes.fromhex(digest)).decode()}:" if digest else ""
    return call("PUT", "/blobs/code", content_type="application/gzip", content_length=str(size), content_digest=said)


def upload_progress(digest: str) -> Call[None]:
    """Ask how far the upload of an archive is; the answer is NotFound if no part of it is kept."""
    return call("HEAD", f"/blobs/uploads/{digest}")


def append_to_upload(digest: str, offset: int, size: int) -> Call[UploadProgress]:
    """Send the last bytes of an archive of `size` bytes, from `offset` on."""
    return call(
        "PATCH",
        f"/blobs/uploads/{digest}",
        content_type="application/partial-upload",
        content_length=str(size - offset),
        upload_offset=str(offset),
        upload_complete="?1",
    )


def enter(ref: str, role: str, index: int, command: Sequence[str], *, tty: bool = False) -> Call[bytes]:
    """Return the call for the WebSocket of a command in a running task."""
    return call("GET", job_path(ref, "tasks", role, index, "exec"), {"cmd": list(command), "tty": tty})


def reach(ref: str, role: str, index: int, port: str) -> Call[bytes]:
    """Return the call for the WebSocket of a connection to a port of a running task."""
    return call("GET", job_path(ref, "tasks", role, index, "forward"), {"port": port})


def enter_by_ssh(ref: str, role: str, index: int) -> Call[bytes]:
    """Return the call for the WebSocket that carries an SSH connection into a running task."""
    return call("GET", job_path(ref, "tasks", role, index, "ssh"))


def ssh_access(ref: str, role: str, index: int, public_key: str) -> Call[SshAccessView]:
    """Return a certificate with which the owner of a key may enter a running task by SSH within five minutes."""
    return call("POST", job_path(ref, "tasks", role, index, "ssh"), data={"publicKey": public_key})


def ports(ref: str, role: str, index: int) -> Call[PortsView]:
    """Return the ports of a running task, with the path of a notebook behind one of them."""
    return call("GET", job_path(ref, "tasks", role, index, "ports"))


def services(ref: str) -> Call[ServicesView]:
    """Return the services of a job: the declared ports of its running tasks, which a browser may open."""
    return call("GET", job_path(ref, "services"))


def start_tensorboard(jobs: Sequence[str]) -> Call[JobDetail]:
    """Start TensorBoard for the outputs of jobs, as a job without devices; the one that shows the same is returned."""
    return call("POST", "/tensorboards", data={"jobs": list(jobs)})


def open_service(ref: str, role: str, index: int, port: str) -> Call[OpenedService]:
    """Return an address that opens a service of a job in a browser, within a minute and once."""
    return call("POST", job_path(ref, "services", role, index, port))
