"""Series of longer ago are read from a Prometheus, within bounds; what is wrong with it is said in one sentence."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from corral.control.metrics.series_sources import KEPT_SECONDS, is_longer
from corral.kernel.errors import InvalidInput, Unavailable
from corral.model.metrics.task_families import TASK_FAMILIES
from corral.model.series import MOST_SERIES, SeriesQuestion
from corral.monitor.series import prometheus as module
from corral.monitor.series.prometheus import PrometheusSeries

QUESTION = SeriesQuestion(600.0, 2400.0, 600, ("corral_queue_used",), labels={"queue": 'a"b\\'})
Answer = Callable[[dict[str, str]], bytes]


class MadeUp:
    """A server that answers as a test says."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []
        self.heads: list[str] = []
        self.answer: Answer = lambda asked: matrix()
        self.status = 200
        self.raw: Callable[[asyncio.StreamWriter], Awaitable[None]] | None = None
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        length = next(int(line.partition(":")[2]) for line in head.splitlines() if line.startswith("Content-Length"))
        form = {name: value for name, (value,) in parse_qs((await reader.readexactly(length)).decode()).items()}
        self.asked.append(form)
        try:
            if self.raw is not None:
                await self.raw(writer)
            else:
                body = self.answer(form)
                writer.write(f"HTTP/1.1 {self.status} x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()


def matrix(*series: tuple[dict[str, str], list[tuple[float, str]]]) -> bytes:
    result = [{"metric": metric, "values": values} for metric, values in series]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()


@pytest.fixture
async def made() -> AsyncIterator[MadeUp]:
    found = MadeUp()
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    found.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/prom/"
    yield found
    server.close()


async def test_steps_are_asked_as_they_are_kept(made: MadeUp) -> None:
    values = {"avg": "2", "min": "1", "max": "NaN"}
    metric = {"queue": "a", "resource": "cpu", "instance": "corral:8470", "job": "corral", "region": "x"}
    made.answer = lambda asked: matrix((metric, [(1200.0, values[asked["query"][:3]]), (2400.0, "8")]))
    found, left_out = await PrometheusSeries(made.url).read(QUESTION)
    (series,) = found
    assert (series.family, left_out) == ("corral_queue_used", 0)
    assert series.labels == {"queue": "a", "resource": "cpu", "instance": "corral:8470"}
    assert (series.mean, series.low, series.high) == ((2.0, None, 8.0), (1.0, None, 8.0), (None, None, 8.0))
    assert [each["query"] for each in made.asked] == [
        f'{name}_over_time(corral_queue_used{{queue="a\\"b\\\\"}}[600s])' for name in ("avg", "min", "max")
    ]
    assert {(each["start"], each["end"], each["step"]) for each in made.asked} == {("1200.0", "2400.0", "600")}
    assert made.heads[0].startswith("POST /prom/api/v1/query_range ")


async def test_of_a_job_its_tasks_are_asked_and_what_it_reports_is_nowhere(made: MadeUp, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    reader = PrometheusSeries(made.url, tmp_path / "token")
    assert await reader.read(SeriesQuestion(0.0, 1200.0, 600, job="1m8")) == ([], 0)
    of_tasks = [family for family in TASK_FAMILIES if "job_instance_id" in family.labels]
    assert len(made.asked) == 3 * len(of_tasks)
    assert made.asked[0]["query"] == 'avg_over_time(task_cpu_percent{job_instance_id="1m8"}[600s])'
    assert "Authorization: Bearer s3cret" in made.heads[0]
    made.asked.clear()
    assert await reader.read(SeriesQuestion(0.0, 1200.0, 600, ("corral_job_loss",), job="1m8")) == ([], 0)
    assert made.asked == []


async def test_a_file_with_a_colon_has_a_user_and_a_password(made: MadeUp, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("corral:pass:word\n")
    await PrometheusSeries(made.url, tmp_path / "token").read(QUESTION)
    assert "Authorization: Basic Y29ycmFsOnBhc3M6d29yZA==" in made.heads[0]


async def test_series_beyond_the_bound_are_counted(made: MadeUp) -> None:
    many = [({"queue": str(number)}, [(1200.0, "1")]) for number in range(MOST_SERIES + 7)]
    made.answer = lambda asked: matrix(*many)
    found, left_out = await PrometheusSeries(made.url).read(QUESTION)
    assert (len(found), left_out) == (MOST_SERIES, 7)


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (
            400,
            b'{"status":"error","errorType":"bad_data","error":"parse error"}',
            "Prometheus answers 400: parse error.",
        ),
        (502, b"<html>Bad Gateway</html>", "answers 502, and not as Prometheus does."),
        (302, b"", "answers 302, and not as Prometheus does."),
        (200, b'{"status":"success","data":{"result":[{"metric":{},"values":[["x",1]]}]}}', "not as Prometheus does."),
        (200, b'{"status":"success","data":{"result":[', "not as Prometheus does."),
    ],
)
async def test_another_answer_is_refused_in_a_sentence(made: MadeUp, status: int, body: bytes, said: str) -> None:
    made.status, made.answer = status, lambda asked: body
    with pytest.raises(Unavailable, match="nswers") as refused:
        await PrometheusSeries(made.url).read(QUESTION)
    assert refused.value.message.endswith(said)


async def test_an_endless_and_a_slow_answer_are_given_up(made: MadeUp, monkeypatch: pytest.MonkeyPatch) -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 x\r\n\r\n")
        while True:
            writer.write(b" " * 65_536)
            await writer.drain()

    monkeypatch.setattr(module, "_MOST_BYTES", 2**20)
    made.raw = endless
    with pytest.raises(Unavailable, match="more than 1 MiB"):
        await PrometheusSeries(made.url).read(QUESTION)

    async def dripping(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 x\r\n\r\n")
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.05)

    made.raw = dripping
    with pytest.raises(Unavailable, match="did not answer within"):
        await PrometheusSeries(made.url, seconds=0.5).read(QUESTION)

    async def silent(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(2)

    made.raw = silent
    with pytest.raises(Unavailable, match="did not answer within"):
        await PrometheusSeries(made.url, seconds=0.5).read(QUESTION)


async def test_one_that_is_down_is_told(made: MadeUp, tmp_path: Path) -> None:
    async def nobody(writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    made.raw = nobody
    with pytest.raises(Unavailable, match=r"Prometheus at 127\.0\.0\.1 cannot be asked for series: "):
        await PrometheusSeries(made.url).read(QUESTION)
    with pytest.raises(Unavailable, match="token cannot be read"):
        await PrometheusSeries(made.url, tmp_path / "none").read(QUESTION)


@pytest.mark.parametrize("url", ["ftp://p:9090", "http://", "http://u:p@host", "http://host:x", "http://[::1"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="The address of Prometheus"):
        PrometheusSeries(url)


async def test_a_label_that_cannot_be_one_is_refused(made: MadeUp) -> None:
    question = SeriesQuestion(0.0, 1200.0, 600, ("corral_jobs",), labels={"a}": "b"})
    with pytest.raises(InvalidInput, match="cannot be the name of a label"):
        await PrometheusSeries(made.url).read(question)
    assert made.asked == []


def test_what_is_kept_here_is_not_asked_for() -> None:
    now = 200 * 86_400.0
    assert is_longer(SeriesQuestion(now - KEPT_SECONDS - 3600, now, 600), now)
    assert not is_longer(SeriesQuestion(now - KEPT_SECONDS, now, 600), now)
