"""Read NVIDIA GPUs from NVIDIA's DCGM exporter, where it measures them already.

The page is Prometheus' text with the names of DCGM exporter's `default-counters.csv`. Its size, time, lines and devices are
bounded, and no redirect is followed.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from corral.devices.figures.device_figures import MOST_DEVICES, DeviceFigures, number, word
from corral.kernel.errors import InvalidInput

SECONDS: Final = 5.0
"""Seconds in which the whole page must be there."""
MOST_BYTES: Final = 4 * 2**20
_MOST_LINE: Final = 4096
"""Characters of a series that is read; longer ones are passed over."""
_MIB: Final = 2**20
_BLANK: Final = 2**31 - 16
"""From here on DCGM's numbers for "not known" begin; counters may be as large."""
_PREFIX: Final = "DCGM_FI_DEV_"
_SERIES: Final = re.compile(r"DCGM_FI_DEV_([A-Z0-9_]+)\{([^\n]*)\} ([^\s]+)(?: -?\d+)?\s*")
_LABEL: Final = re.compile(r'(?<!\w)([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"')
_FIELDS: Final[Mapping[str, tuple[str, type]]] = {
    "GPU_UTIL": ("use", float), "MEM_COPY_UTIL": ("memory_use", float), "ENC_UTIL": ("encoder_use", float),
    "DEC_UTIL": ("decoder_use", float), "GPU_TEMP": ("temperature", float), "MEMORY_TEMP": ("memory_temperature", float),
    "POWER_USAGE": ("power", float), "SM_CLOCK": ("clock", float), "MEM_CLOCK": ("memory_clock", float),
    "TOTAL_ENERGY_CONSUMPTION": ("energy", int), "PCIE_REPLAY_COUNTER": ("pcie_replays", int),
    "ECC_SBE_VOL_TOTAL": ("ecc_corrected", int), "ECC_DBE_VOL_TOTAL": ("ecc_uncorrected", int), "XID_ERRORS": ("xid", int),
    "CORRECTABLE_REMAPPED_ROWS": ("remapped_corrected", int),
    "UNCORRECTABLE_REMAPPED_ROWS": ("remapped_uncorrected", int), "ROW_REMAP_FAILURE": ("remap_failed", bool),
    "NVLINK_BANDWIDTH_TOTAL": ("nvlink_kib", int),
}  # fmt: skip
"""The figure that a field of DCGM is, and its type."""
_MEMORY: Final = ("FB_USED", "FB_FREE", "FB_RESERVED")
"""In MiB; all memory is their sum."""


class ExporterUrl(NamedTuple):
    """Where an exporter is asked."""

    encrypted: bool
    host: str
    port: int
    path: str


def exporter_url(text: str) -> ExporterUrl:
    """Read an address such as `http://127.0.0.1:9400/metrics`; raises InvalidInput for one that is none."""
    try:
        parts = urlsplit(text)
        port = parts.port or 9400
    except ValueError:
        raise _no_url() from None
    plain = parts.username is None and parts.password is None and not parts.fragment
    if parts.scheme not in ("http", "https") or not parts.hostname or not plain or not re.fullmatch("[!-~]+", text):
        raise _no_url()
    query = f"?{parts.query}" if parts.query else ""
    return ExporterUrl(parts.scheme == "https", parts.hostname, port, (parts.path or "/metrics") + query)


def _no_url() -> InvalidInput:
    return InvalidInput(
        "invalid-setting", "The address of DCGM exporter is written as http://127.0.0.1:9400/metrics, without a user."
    )


class DcgmExporterReader:
    """Reads devices from DCGM exporter in each round; one that does not answer leaves them out."""

    def __init__(self, url: ExporterUrl, seconds: float = SECONDS) -> None:
        self._url, self._seconds = url, seconds

    def read(self) -> tuple[DeviceFigures, ...]:
        """Return the figures of the page of now. Raises OSError or ValueError if there is none."""
        return parse_page(_fetched(self._url, self._seconds))

    def close(self) -> None:
        """Nothing stays open."""


def _fetched(url: ExporterUrl, seconds: float) -> bytes:
    """The page of an exporter; one that sends slowly is cut off in time."""
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
            raise TimeoutError(f"DCGM exporter did not answer within {seconds:g} s") from None
        said = getattr(error, "strerror", None) or type(error).__name__
        raise OSError(f"DCGM exporter cannot be read: {said}") from None
    finally:
        made.close()
    if ended.is_set():
        raise TimeoutError(f"DCGM exporter did not answer within {seconds:g} s")
    if answer.status != 200:
        raise ValueError(f"DCGM exporter answers with the status {answer.status}")
    if len(body) > MOST_BYTES:
        raise ValueError(f"DCGM exporter answers with more than {MOST_BYTES // _MIB} MiB")
    return body


def _cut(connection: socket.socket, ended: threading.Event) -> None:
    ended.set()
    with contextlib.suppress(OSError):  # the answer is whole already
        connection.shutdown(socket.SHUT_RDWR)


def parse_page(page: bytes) -> tuple[DeviceFigures, ...]:
    """The GPUs of a page, by their index. Raises ValueError for a page that tells of none.

    Series of MIG instances are left out: their index is that of the GPU, and their figures are not.
    """
    found: dict[int, dict[str, Any]] = {}
    memory: dict[int, dict[str, float]] = {}
    for field, labels, value in _series(page):
        told = number(labels.get("gpu", ""))
        index = -1 if told is None else int(told)
        if labels.get("GPU_I_ID") or not 0 <= index < MOST_DEVICES:
            continue
        device = found.setdefault(index, _about(index, labels))
        if field in _FIELDS:
            name, kind = _FIELDS[field]
            if kind is not float or value < _BLANK:
                device[name] = kind(value)
        elif field in _MEMORY and value < _BLANK:
            memory.setdefault(index, {})[field] = value
    if not found:
        raise ValueError("DCGM exporter tells of no GPU")
    for index, parts in memory.items():
        if "FB_USED" in parts:
            found[index]["memory_used"] = int(parts["FB_USED"]) * _MIB
            if "FB_FREE" in parts:
                found[index]["memory_total"] = int(sum(parts.values())) * _MIB
    return tuple(DeviceFigures(**found[index]) for index in sorted(found))


def _series(page: bytes) -> Iterator[tuple[str, dict[str, str], float]]:
    for line in page.decode(errors="replace").split("\n"):
        if not line.startswith(_PREFIX) or len(line) > _MOST_LINE:
            continue
        series = _SERIES.fullmatch(line)
        value = None if series is None else number(series[3])
        if series is not None and value is not None and value >= 0:
            yield series[1], dict(_LABEL.findall(series[2])), value


def _about(index: int, labels: Mapping[str, str]) -> dict[str, Any]:
    minor = number(labels.get("device", "").removeprefix("nvidia"))
    return {
        "vendor": "nvidia",
        "index": index,
        "id": word(labels.get("UUID", "")),
        "model": word(labels.get("modelName", "")),
        "minor": None if minor is None or minor < 0 else int(minor),
        "bus": word(labels.get("pci_bus_id", "")),
    }
