"""GPUs are read from DCGM exporter where it is configured: a made-up one, which tells a page after the vendor's names."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.devices.figures.dcgm_exporter import DcgmExporterReader, parse_page
from corral.devices.figures.device_figures import MOST_DEVICES, DeviceFigures
from corral.devices.figures.exporter_page import DCGM_EXPORTER, MOST_BYTES, ExporterUrl, exporter_url
from corral.devices.figures.reader import find_reader, reader_finder
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import AttemptId
from corral.model.metrics.device_families import DeviceMetric
from corral.model.metrics.task_families import TaskMetric
from corral.monitor.agent.collector import Collector
from corral.monitor.agent.task_names import TaskNames
from tests.devices.dcgm_exporter import PAGE, Exporter
from tests.monitor.agent.test_tasks_are_measured import Tree, named
from tests.monitor.agent.test_the_agent_is_scraped import Agent
from tests.reserved import free_port

MIB = 2**20
FIRST, SECOND = (f"GPU-5a1b2c3d-000{at}-4e5f-8a9b-00000000000{at}" for at in (1, 2))


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    made = Exporter()
    yield made
    made.end()


def test_a_page_is_read_with_the_fields_that_it_has() -> None:
    first, second = parse_page(PAGE)
    assert first == DeviceFigures(
        "nvidia", 0, FIRST, "NVIDIA A100-SXM4-80GB", 0, "00000000:07:00.0", use=98.0, clock=1410.0, power=388.12,
        memory_used=40960 * MIB, memory_total=81920 * MIB, energy=4711000000000, xid=79, remap_failed=True,
    )  # fmt: skip
    assert (second.index, second.id, second.use, second.memory_used) == (1, SECOND, 0.0, None)


def test_the_collectors_series_come_from_the_exporter_and_end_with_it(
    exporter: Exporter, own_task: Callable[[str], tuple[AttemptId, TaskNames]]
) -> None:
    attempt, names = own_task(FIRST)
    collector = Collector(parts=("devices", "tasks"), find=reader_finder(exporter.address), host="gpu1")

    def told() -> dict[tuple[str, tuple[str, ...]], float]:
        samples = collector.collect(lambda found, _: names if found == attempt else None)
        return {(each.family, each.labels): each.value for each in samples.values}

    values = told()
    assert values[DeviceMetric.CONFIGURED, ()] == 2.0
    assert values[DeviceMetric.NVIDIA, ("0",)] == 98.0
    labels = ("0", FIRST, "00000000:07:00.0", "nvidia0", "NVIDIA A100-SXM4-80GB", "gpu1")
    assert values[DeviceMetric.XID, labels] == 79.0
    assert values[TaskMetric.DEVICE, (*names.labels, "0")] == 98.0
    assert values[TaskMetric.POWER, names.labels] == 388.12
    exporter.status = 503
    after = told()
    assert (TaskMetric.DEVICE, (*names.labels, "0")) not in after and (DeviceMetric.NVIDIA, ("0",)) not in after
    assert after[TaskMetric.FAILURES, ("devices",)] == 1.0
    assert (TaskMetric.MEMORY, names.labels) in after
    exporter.status = 200
    assert told()[DeviceMetric.NVIDIA, ("0",)] == 98.0
    collector.close()


def test_an_agent_tells_the_gpus_of_its_exporter(exporter: Exporter, tmp_path: Path) -> None:
    agent = Agent(tmp_path, "--parts", "devices", "--dcgm-exporter", exporter.address)
    try:
        page = agent.page().text
    finally:
        assert agent.end() == 0
    (line,) = [each for each in page.splitlines() if each.startswith("DCGM_FI_DEV_GPU_UTIL{") and FIRST in each]
    assert line.endswith(" 98.0") and 'gpu="0"' in line
    assert f'corral_device_memory_bytes{{device="0",id="{FIRST}"' in page


@pytest.fixture
def own_task(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], tuple[AttemptId, TaskNames]]]:
    """A task of a real process that was given one device."""
    trees: list[Tree] = []

    def begin(device: str) -> tuple[AttemptId, TaskNames]:
        trees.append(Tree(named(free_port())))
        return trees[0].attempt, TaskNames("ann", "ann~digits", "worker", "0", "j1", "default", frozenset({device}))

    yield begin
    for each in trees:
        each.end()


@pytest.mark.parametrize(
    ("status", "headers", "body", "said"),
    [
        (503, {}, PAGE, "the status 503"),
        (302, {"Location": "http://127.0.0.1:1/"}, b"", "the status 302"),
        (200, {}, b"", "tells of no GPU"),
        (200, {}, b"<html>\xff\0</html>", "tells of no GPU"),
        (200, {}, b"#" * (MOST_BYTES + 1), "more than 4 MiB"),
    ],
)
def test_what_is_no_page_of_an_exporter_is_refused(
    exporter: Exporter, status: int, headers: dict[str, str], body: bytes, said: str
) -> None:
    exporter.status, exporter.headers, exporter.body = status, headers, body
    with pytest.raises(ValueError, match=said):
        DcgmExporterReader(exporter_url(exporter.address, DCGM_EXPORTER)).read()


def test_an_exporter_that_is_away_or_no_web_server_is_told_in_one_sentence(exporter: Exporter) -> None:
    exporter.end()
    with pytest.raises(OSError, match="cannot be read: Connection refused"):
        DcgmExporterReader(exporter_url(exporter.address, DCGM_EXPORTER)).read()
    exporter.server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)  # for the fixture's end
    exporter.thread = threading.Thread(target=exporter.server.serve_forever)
    exporter.thread.start()


def test_an_exporter_that_sends_without_end_is_cut_off() -> None:
    """Each byte comes before the connection's own time is over, so that only the time of the whole ends it."""
    gone = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                try:
                    while not gone.wait(0.02):
                        connection.sendall(b"#")
                except OSError:
                    pass

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            url = ExporterUrl(False, "127.0.0.1", server.getsockname()[1], "/metrics", DCGM_EXPORTER)
            with pytest.raises(TimeoutError, match=r"within 0\.5 s"):
                DcgmExporterReader(url, seconds=0.5).read()
        finally:
            gone.set()
            thread.join()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "127.0.0.1:9400",
        "ftp://host/metrics",
        "http://",
        "http://host:99999/",
        "http://a:b@host/",
        "http://h/\r\nX: y",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="written as http://"):
        exporter_url(text, DCGM_EXPORTER)


def test_an_address_has_a_usual_port_and_path_and_none_reads_the_machine() -> None:
    assert exporter_url("http://gpu1", DCGM_EXPORTER) == ExporterUrl(False, "gpu1", 9400, "/metrics", DCGM_EXPORTER)
    assert exporter_url("https://[::1]:1234/m?x=1", DCGM_EXPORTER) == ExporterUrl(
        True, "::1", 1234, "/m?x=1", DCGM_EXPORTER
    )
    assert reader_finder("") is find_reader


def test_a_page_of_more_devices_than_a_machine_has_is_cut() -> None:
    lines = [f'DCGM_FI_DEV_GPU_UTIL{{gpu="{at}"}} {at % 100}' for at in (*range(MOST_DEVICES + 5), -1, 1e30)]
    assert len(parse_page("\n".join(lines).encode())) == MOST_DEVICES


@given(
    st.binary(max_size=300) | st.text(max_size=300).map(lambda text: f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",{text}'.encode())
)
def test_any_bytes_are_read_or_refused(page: bytes) -> None:
    try:
        found = parse_page(page)
    except ValueError:
        return
    assert found
