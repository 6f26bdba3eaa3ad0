"""Fetch the page of a vendor's exporter and read its series, within bounds of time, size and lines.

The page is Prometheus' text. No redirect is followed.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from corral.devices.figures.device_figures import number
from corral.kernel.errors import InvalidInput

SECONDS: Final = 5.0
"""Seconds in which the whole page must be there."""
MOST_BYTES: Final = 4 * 2**20
_MOST_LINE: Final = 4096
"""Characters of a series that is read; longer ones are passed over."""
_MOST_VERSION: Final = 100
_MIB: Final = 2**20
_SERIES: Final = re.compile(r"([A-Za-z_:][\w:]*)(?:\{([^\n]*)\})? ([^\s]+)(?: -?\d+)?\s*")
_LABEL: Final = re.compile(r'(?<!\w)([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"')
_ESCAPE: Final = re.compile(r"\\(.)")


class Exporter(NamedTuple):
    """One kind of exporter."""

    name: str
    port: int
    """Its usual port."""
    build: str = ""
    """The series whose label `version` is its own version; "" where it tells none."""


DCGM_EXPORTER: Final = Exporter("DCGM exporter", 9400)
AMD_EXPORTER: Final = Exporter("AMD's device metrics exporter", 5000)
NODE_EXPORTER: Final = Exporter("node exporter", 9100, "node_exporter_build_info")


class ExporterUrl(NamedTuple):
    """Where an exporter is asked."""

    encrypted: bool
    host: str
    port: int
    path: str
    exporter: Exporter


class Series(NamedTuple):
    """One series of a page."""

    name: str
    labels: dict[str, str]
    value: float


def exporter_url(text: str, exporter: Exporter) -> ExporterUrl:
    """Read an address such as `http://127.0.0.1:9400/metrics`; raises InvalidInput for one that is none."""
    try:
        parts = urlsplit(text)
        port = parts.port or exporter.port
    except ValueError:
        raise _no_url(exporter) from None
    plain = parts.username is None and parts.password is None and not parts.fragment
    if parts.scheme not in ("http", "https") or not parts.hostname or not plain or not re.fullmatch("[!-~]+", text):
        raise _no_url(exporter)
    query = f"?{parts.query}" if parts.query else ""
    return ExporterUrl(parts.scheme == "https", parts.hostname, port, (parts.path or "/metrics") + query, exporter)


def _no_url(exporter: Exporter) -> InvalidInput:
    return InvalidInput(
        "invalid-setting",
        f"The address of {exporter.name} is written as http://127.0.0.1:{exporter.port}/metrics, without a user.",
    )


def fetched(url: ExporterUrl, seconds: float = SECONDS) -> bytes:
    """The page of an exporter; one that sends slowly is cut off in time. Raises OSError or ValueError if there is none."""
    name = url.exporter.name
    made: http.client.HTTPConnection
    if url.encrypted:
        made = http.client.HTTPSConnection(url.host, url.port, timeout=seconds, context=ssl.create_default_context())
    else:
        made = http.client.HTTPConnection(url.host, url.port, timeout=seconds)
    ended = threading.Event()
    try:
        made.connect()
        cut = threading.Timer(seconds, _cut, (made.sock, ended))
        cut.daemon = True
        cut.start()
        try:
            made.request("GET", url.path, headers={"Accept": "text/plain", "Connection": "close"})
            answer = made.getresponse()
            body = answer.read(MOST_BYTES + 1)
        finally:
            cut.cancel()
    except (http.client.HTTPException, OSError) as error:
        if ended.is_set():
            raise TimeoutError(f"{name} did not answer within {seconds:g} s") from None
        said = getattr(error, "strerror", None) or type(error).__name__
        raise OSError(f"{name} cannot be read: {said}") from None
    finally:
        made.close()
    if ended.is_set():
        raise TimeoutError(f"{name} did not answer within {seconds:g} s")
    if answer.status != 200:
        raise ValueError(f"{name} answers with the status {answer.status}")
    if len(body) > MOST_BYTES:
        raise ValueError(f"{name} answers with more than {MOST_BYTES // _MIB} MiB")
    return body


def _cut(connection: socket.socket, ended: threading.Event) -> None:
    ended.set()
    with contextlib.suppress(OSError):  # the answer is whole already
        connection.shutdown(socket.SHUT_RDWR)


def version_in(page: bytes, exporter: Exporter) -> str:
    """The version that an exporter tells of itself on its page, "" for none."""
    if not exporter.build:
        return ""
    told = (each.labels.get("version", "") for each in series_of(page, (exporter.build,)))
    return next(told, "")[:_MOST_VERSION]


def series_of(page: bytes, begins: tuple[str, ...]) -> Iterator[Series]:
    """The series of a page whose lines begin with one of these words, except those without a number."""
    for line in page.decode(errors="replace").split("\n"):
        if not line.startswith(begins) or len(line) > _MOST_LINE:
            continue
        found = _SERIES.fullmatch(line)
        value = None if found is None else number(found[3])
        if found is not None and value is not None:
            labels = {name: _ESCAPE.sub(_unescaped, text) for name, text in _LABEL.findall(found[2] or "")}
            yield Series(found[1], labels, value)


def _unescaped(escape: re.Match[str]) -> str:
    return "\n" if escape[1] == "n" else escape[1]
