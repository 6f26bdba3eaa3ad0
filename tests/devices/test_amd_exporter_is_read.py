"""GPUs are read from AMD's device metrics exporter where it is configured: a made-up page after the vendor's names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.devices.figures.amd_exporter import AmdExporterReader, parse_page
from corral.devices.figures.device_figures import MOST_DEVICES, DeviceFigures, Held
from corral.devices.figures.exporter_page import AMD_EXPORTER, MOST_BYTES, ExporterUrl, exporter_url
from corral.devices.figures.reader import reader_finder
from corral.kernel.errors import InvalidInput
from corral.model.metrics.device_families import DeviceMetric
from corral.monitor.agent.collector import Collector
from tests.devices.dcgm_exporter import Exporter
from tests.monitor.agent.test_the_agent_is_scraped import Agent

PAGE = (Path(__file__).parent / "recorded" / "amd-exporter-1.txt").read_bytes()
MIB = 2**20


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    made = Exporter()
    made.body = PAGE
    yield made
    made.end()


def test_a_page_is_read_with_the_fields_that_each_generation_has() -> None:
    first, second, old = parse_page(PAGE)
    assert first == DeviceFigures(
        "amd", 0, "AMD-692409005408", "AMD Instinct MI300X OAM", use=97.0, memory_use=41.0, temperature=76.0,
        memory_temperature=61.0, power=748.0, energy=4711000000000, clock=2100.0, memory_clock=900.0,
        memory_total=196592 * MIB, memory_used=183265 * MIB, pcie_replays=3, ecc_corrected=5, ecc_uncorrected=1,
        held_down=((Held.HEAT, 0.4), (Held.PROCHOT, 0.0), (Held.POWER, 0.97)),
    )  # fmt: skip
    assert (second.use, second.memory_use, second.power) == (12.0, None, 131.0), "the first partition; 65535 is unknown"
    assert (second.held_down, old.held_down) == (None, None), "65535 is unknown, and an MI250X tells nothing"
    assert (old.index, old.model, old.use, old.clock) == (2, "102-D65201-00", 3.0, 800.0)
    assert (old.temperature, old.power) == (38.0, 92.0), "the edge of an MI250X"


def test_devices_have_the_ids_by_which_jobs_are_given_them(exporter: Exporter) -> None:
    kernel = (DeviceFigures("amd", 0, "AMD-5f3a", bus="0000:c1:00.0"),)
    reader = AmdExporterReader(exporter_url(exporter.address, AMD_EXPORTER), kernel=lambda: kernel)
    first, second, _ = reader.read()
    assert (first.id, first.bus, first.use) == ("AMD-5f3a", "0000:c1:00.0", 97.0)
    assert second.id == "AMD-692409005409", "the kernel does not have it"


def test_an_agent_tells_the_gpus_of_its_exporter(exporter: Exporter, tmp_path: Path) -> None:
    agent = Agent(tmp_path, "--parts", "devices", "--amd-exporter", exporter.address)
    try:
        page = agent.page().text
    finally:
        assert agent.end() == 0
    told = {line.partition("{")[0]: line.rpartition(" ")[2] for line in page.splitlines() if '"0"' in line}
    assert (told[DeviceMetric.AMD], told[DeviceMetric.POWER]) == ("97.0", "748.0")


def test_the_collectors_series_end_with_the_exporter(exporter: Exporter) -> None:
    collector = Collector(parts=("devices",), find=reader_finder("", exporter.address), host="gpu2")

    def told() -> set[str]:
        return {each.family for each in collector.collect(lambda *_: None).values}

    assert DeviceMetric.AMD in told()
    exporter.status = 503
    assert DeviceMetric.AMD not in told()
    exporter.status = 200
    assert DeviceMetric.AMD in told()
    collector.close()


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (503, PAGE, "AMD's device metrics exporter answers with the status 503"),
        (200, b"", "AMD's device metrics exporter tells of no GPU"),
        (200, b'gpu_gfx_activity{gpu_id="0"} NaN\n', "tells of no GPU"),
        (200, b"<html>\xff\0</html>", "tells of no GPU"),
        (200, b"#" * (MOST_BYTES + 1), "more than 4 MiB"),
    ],
)
def test_what_is_no_page_of_the_exporter_is_refused(exporter: Exporter, status: int, body: bytes, said: str) -> None:
    exporter.status, exporter.body = status, body
    with pytest.raises(ValueError, match=said):
        AmdExporterReader(exporter_url(exporter.address, AMD_EXPORTER), kernel=tuple).read()


def test_an_address_has_a_usual_port_and_only_one_vendors_exporter_is_read() -> None:
    assert exporter_url("http://gpu1", AMD_EXPORTER) == ExporterUrl(False, "gpu1", 5000, "/metrics", AMD_EXPORTER)
    with pytest.raises(InvalidInput, match="AMD's device metrics exporter is written as http://127"):
        reader_finder("", "gpu1:5000")
    with pytest.raises(InvalidInput, match="not of both"):
        reader_finder("http://gpu1:9400/metrics", "http://gpu1:5000/metrics")


def test_a_page_of_more_devices_than_a_machine_has_is_cut() -> None:
    lines = [f'gpu_gfx_activity{{gpu_id="{at}"}} {at % 100}' for at in (*range(MOST_DEVICES + 5), -1, 1e30)]
    assert len(parse_page("\n".join(lines).encode())) == MOST_DEVICES


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: f'gpu_clock{{gpu_id="0",{text}'.encode()))
def test_any_bytes_are_read_or_refused(page: bytes) -> None:
    try:
        found = parse_page(page)
    except ValueError:
        return
    assert found
