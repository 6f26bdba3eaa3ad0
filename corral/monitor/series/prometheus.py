"""Read series of longer ago from a Prometheus that scrapes this server, by its `query_range`.

Everything that comes from there is bounded: the bytes of an answer, the time of a question, the series and the steps. The
address is the administrator's setting; nobody else can choose where this reads.
"""

from __future__ import annotations

import asyncio
import base64
import json
import math
import re
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode, urlsplit

import msgspec

from corral.kernel.errors import InvalidInput, Unavailable
from corral.model.metrics.families import FAMILIES
from corral.model.metrics.family import Family
from corral.model.metrics.job_figures import family_of
from corral.model.series import MOST_SERIES, SeriesQuestion, SeriesView

if TYPE_CHECKING:
    import http.client

SECONDS: Final = 15.0
"""Seconds that all queries of one question may take together."""
_MOST_BYTES: Final = 16 * 2**20
"""Bytes of one answer."""
_MOST_TOKEN: Final = 4096
_AT_ONCE: Final = 2
"""Questions that are asked at the same time; each holds an answer in memory."""
_LABEL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INSTANCE: Final = "instance"
_OF_JOB: Final = "job_instance_id"
_COLUMNS: Final = ("avg_over_time", "min_over_time", "max_over_time")


class _Series(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]]


class _Data(msgspec.Struct):
    result: list[_Series] = []


class _Answer(msgspec.Struct):
    status: str
    data: _Data = msgspec.field(default_factory=_Data)
    error: str = ""


class PrometheusSeries:
    """The series that one Prometheus has."""

    def __init__(self, url: str, token_file: Path | None = None, *, seconds: float = SECONDS) -> None:
        """`url` is its address, with the path below which it answers; `token_file` has a bearer token, or USER:PASSWORD.

        Raises InvalidInput for an address that is none.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise InvalidInput("invalid-setting", "The address of Prometheus has no valid host and port.") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise InvalidInput(
                "invalid-setting", "The address of Prometheus begins with http:// or https://, and holds no user."
            )
        self._encrypted, self._host, self._port = parts.scheme == "https", parts.hostname, port
        self._path = f"{parts.path.rstrip('/')}/api/v1/query_range"
        self._token_file = token_file
        self._seconds = seconds
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def read(self, question: SeriesQuestion) -> tuple[list[SeriesView], int]:
        """The series that a question is about, and how many were left out.

        Raises Unavailable if Prometheus does not answer in time, InvalidInput for a label that cannot be one.
        """
        queries = _queries(question)
        async with self._turns:
            return await asyncio.to_thread(self._read, question, queries)

    def _read(self, question: SeriesQuestion, queries: Mapping[str, str]) -> tuple[list[SeriesView], int]:
        ends, found, left_out = time.monotonic() + self._seconds, list[SeriesView](), 0
        for name, selector in queries.items():
            columns = [self._column(question, f"{each}({selector}[{question.step}s])", ends) for each in _COLUMNS]
            family = family_of(name)
            assert family is not None
            for metric in columns[0]:
                if len(found) < MOST_SERIES:
                    found.append(_view(family, metric, columns, question.steps))
                else:
                    left_out += 1
        return found, left_out

    def _column(
        self, question: SeriesQuestion, query: str, ends: float
    ) -> dict[tuple[tuple[str, str], ...], dict[int, float]]:
        """By series, the values by step."""
        first = question.begin // question.step * question.step
        until = first + question.steps * question.step
        asked = {"query": query, "start": first + question.step, "end": until, "step": question.step}
        answer = self._ask(urlencode(asked), ends)
        return {
            tuple(sorted(each.metric.items())): {
                round((at - first) / question.step) - 1: number
                for at, text in each.values
                if (number := _number(text)) is not None
            }
            for each in answer.data.result
        }

    def _ask(self, form: str, ends: float) -> _Answer:
        import http.client  # most servers never ask

        left = ends - time.monotonic()
        if left <= 0:
            raise self._silent()
        made = http.client.HTTPSConnection if self._encrypted else http.client.HTTPConnection
        connection = made(self._host, self._port, timeout=left)
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json", **self._token()}
        try:
            connection.request("POST", self._path, form, headers)
            response = connection.getresponse()
            content = self._content(response, ends)
        except TimeoutError:
            raise self._silent() from None
        except (OSError, http.client.HTTPException, ssl.SSLError) as error:
            reason = str(error)[:200] or type(error).__name__
            raise Unavailable(
                "prometheus-unreachable", f"Prometheus at {self._host} cannot be asked for series: {reason}."
            ) from None
        finally:
            connection.close()
        return self._understood(response.status, content)

    def _content(self, response: http.client.HTTPResponse, ends: float) -> bytes:
        found = bytearray()
        while part := response.read1(65_536):
            found += part
            if len(found) > _MOST_BYTES:
                raise Unavailable(
                    "prometheus-too-much",
                    f"Prometheus answers with more than {_MOST_BYTES // 2**20} MiB; ask for fewer series or longer steps.",
                )
            if time.monotonic() > ends:
                raise self._silent()
        return bytes(found)

    def _understood(self, status: int, content: bytes) -> _Answer:
        try:
            answer = msgspec.json.decode(content, type=_Answer)
        except msgspec.MsgspecError:
            raise Unavailable(
                "prometheus-not-understood", f"{self._host} answers {status}, and not as Prometheus does."
            ) from None
        if status != 200 or answer.status != "success":
            raise Unavailable("prometheus-refuses", f"Prometheus answers {status}: {answer.error[:200]}.")
        return answer

    def _silent(self) -> Unavailable:
        return Unavailable(
            "prometheus-silent", f"Prometheus at {self._host} did not answer within {self._seconds:.0f} s."
        )

    def _token(self) -> dict[str, str]:
        if self._token_file is None:
            return {}
        try:
            with self._token_file.open("rb") as file:
                token = file.read(_MOST_TOKEN).decode("ascii").strip()
        except (OSError, UnicodeDecodeError):
            raise Unavailable("prometheus-token", "The file of Prometheus' token cannot be read.") from None
        # No bearer token has a colon (RFC 6750).
        kind, value = ("Basic", base64.b64encode(token.encode()).decode()) if ":" in token else ("Bearer", token)
        return {"Authorization": f"{kind} {value}"}


def _queries(question: SeriesQuestion) -> dict[str, str]:
    """By family, the selector of its series; the figures that jobs report are in no Prometheus."""
    labels = dict(question.labels)
    names = question.families
    if question.job:
        labels[_OF_JOB] = question.job
        names = names or tuple(name for name, family in FAMILIES.items() if _OF_JOB in family.labels)
    for name in labels:
        if not _LABEL.fullmatch(name):
            raise InvalidInput("no-label", f"{name[:50]!r} cannot be the name of a label.")
    matchers = ",".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in labels.items())
    told = (name for name in names if name in FAMILIES or name.rpartition("_")[0] in FAMILIES)
    return {name: f"{name}{{{matchers}}}" for name in told}


def _view(
    family: Family,
    metric: tuple[tuple[str, str], ...],
    columns: list[dict[tuple[tuple[str, str], ...], dict[int, float]]],
    steps: int,
) -> SeriesView:
    told = {name: value for name, value in metric if name in family.labels or name == _INSTANCE}
    mean, low, high = (tuple(column.get(metric, {}).get(step) for step in range(steps)) for column in columns)
    return SeriesView(family.name, told, mean, low, high)


def _number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None
