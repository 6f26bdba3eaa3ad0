"""The machine is read from node exporter where it is configured: Debian's own program, and made-up pages."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.devices.figures.exporter_page import MOST_BYTES, NODE_EXPORTER, exporter_url
from corral.kernel.errors import InvalidInput
from corral.model.metrics.node_families import NodeMetric
from corral.model.metrics.samples import Value
from corral.model.metrics.task_families import TaskMetric
from corral.monitor.agent.collector import Collector
from corral.monitor.agent.machine_files import MOST_LINES
from corral.monitor.agent.machine_samples import machine_values
from corral.monitor.agent.node_exporter import NodeExporterReader, machine_source, parse_page
from tests.devices.dcgm_exporter import Exporter
from tests.monitor.agent.test_the_agent_is_scraped import Agent
from tests.reserved import free_port
from tests.testbeds import prometheus

SECONDS: Final = 60.0
COUNTED: Final = {NodeMetric.DISK_READ, NodeMetric.DISK_WRITTEN, NodeMetric.NETWORK_IN, NodeMetric.NETWORK_OUT}
FIXED: Final = {NodeMetric.MEMORY_TOTAL, NodeMetric.FILE_SYSTEM, NodeMetric.FILE_SYSTEM_READ_ONLY, NodeMetric.UNAME}
Figures = dict[tuple[str, tuple[str, ...]], float]

PAGE: Final = rb"""# HELP node_uname_info Labeled system information as provided by the uname system call.
node_uname_info{domainname="(none)",machine="x86_64",nodename="n1",release="6.1",sysname="Linux",version="#1"} 1
node_cpu_seconds_total{cpu="0",mode="idle"} 1.5e+06
node_cpu_seconds_total{cpu="0",mode="made-up"} 3
node_cpu_guest_seconds_total{cpu="0",mode="user"} 7
node_disk_read_bytes_total{device="nvme0n1"} 5
node_disk_read_bytes_total{device="nvme0n1p1"} 4
node_filesystem_avail_bytes{device="/dev/vda",fstype="ext4",mountpoint="/with \"quotes\" \\ and more"} 10
node_filesystem_size_bytes{device="/dev/vda",fstype="ext4",mountpoint="/with \"quotes\" \\ and more"} 20
node_filesystem_size_bytes{device="/dev/vda",fstype="ext4",mountpoint="/again"} 20
node_filesystem_size_bytes{device="/dev/vdb",fstype="xfs",mountpoint="/with a\nline"} 20
node_filesystem_size_bytes{device="nas:/x",fstype="nfs4",mountpoint="/x"} 30
node_filesystem_device_error{device="nas:/x",device_error="mountpoint timeout",fstype="nfs4",mountpoint="/x"} 1
node_filesystem_device_error{device="tmpfs",device_error="",fstype="tmpfs",mountpoint="/run"} 0
node_network_address_assign_type{device="eth0"} 0
node_network_address_assign_type{device="lo"} 0
node_network_address_assign_type{device="veth1"} 3
node_network_carrier_down_changes_total{device="eth0"} 1
node_network_carrier_down_changes_total{device="lo"} 0
node_network_carrier_down_changes_total{device="veth1"} 9
node_network_receive_bytes_total{device="lo"} 1
node_network_receive_bytes_total{device="veth1"} 2
node_timex_offset_seconds -0.25
node_timex_sync_status 1
node_load1 0.5
"""


class NodeExporter:
    """Debian's node exporter on a free port of loopback."""

    def __init__(self) -> None:
        address = f"127.0.0.1:{free_port()}"
        self.address = f"http://{address}/metrics"
        words = [str(prometheus.program("prometheus-node-exporter")), f"--web.listen-address={address}"]
        self.process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        end = time.monotonic() + SECONDS
        while True:
            try:
                httpx2.get(self.address).raise_for_status()
                return
            except httpx2.HTTPError:
                assert self.process.poll() is None and time.monotonic() < end, "node exporter does not answer"
                time.sleep(0.05)

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(SECONDS)


@pytest.fixture(scope="module")
def program() -> Iterator[NodeExporter]:
    if missing := prometheus.missing():
        pytest.skip(missing)
    made = NodeExporter()
    yield made
    made.end()


def keyed(values: list[Value]) -> Figures:
    return {(each.family, each.labels): each.value for each in values}


def test_debians_node_exporter_tells_what_corral_measures_itself(program: NodeExporter) -> None:
    reader, begun = NodeExporterReader(exporter_url(program.address, NODE_EXPORTER)), time.monotonic()
    while True:  # mounts and interfaces of other tests come and go
        before, theirs, after = keyed(machine_values()), keyed(reader.read()), keyed(machine_values())
        if before.keys() == theirs.keys() == after.keys():
            break
        assert time.monotonic() - begun < 120, (before.keys() ^ theirs.keys(), before.keys() ^ after.keys())
    for key in before:
        if key[0] in COUNTED:
            assert before[key] <= theirs[key] <= after[key], key
        if key[0] in FIXED:
            assert theirs[key] == before[key], key
    assert {each[0] for each in theirs} >= COUNTED | FIXED | {NodeMetric.CPU, NodeMetric.CLOCK}


def test_an_agent_tells_the_machine_by_its_exporter(program: NodeExporter, tmp_path: Path) -> None:
    agent = Agent(tmp_path, "--parts", "machine", "--node-exporter", program.address)
    try:
        page = agent.page().text
    finally:
        assert agent.end() == 0
    total = next(int(value) for (name, _), value in keyed(machine_values()).items() if name == NodeMetric.MEMORY_TOTAL)
    (line,) = [each for each in page.splitlines() if each.startswith(NodeMetric.MEMORY_TOTAL)]
    assert float(line.rpartition(" ")[2]) == total
    assert 'corral_agent_failures_total{collector="machine"} 0' in page


def test_of_a_page_the_series_are_taken_that_corral_has_itself() -> None:
    assert keyed(parse_page(PAGE)) == {
        (NodeMetric.UNAME, ("n1", "6.1", "x86_64")): 1.0,
        (NodeMetric.CPU, ("0", "idle")): 1.5e6,
        (NodeMetric.DISK_READ, ("nvme0n1",)): 5.0,
        (NodeMetric.FILE_SYSTEM_AVAILABLE, ("/dev/vda", "ext4", '/with "quotes" \\ and more')): 10.0,
        (NodeMetric.FILE_SYSTEM, ("/dev/vda", "ext4", '/with "quotes" \\ and more')): 20.0,
        (NodeMetric.FILE_SYSTEM, ("nas:/x", "nfs4", "/x")): 30.0,
        (NodeMetric.FILE_SYSTEM_ERROR, ("nas:/x", "nfs4", "/x")): 1.0,
        (NodeMetric.LINK_DOWN, ("eth0",)): 1.0,
        (NodeMetric.NETWORK_IN, ("veth1",)): 2.0,
        (NodeMetric.CLOCK, ()): -0.25,
        (NodeMetric.CLOCK_IN_STEP, ()): 1.0,
    }


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    made = Exporter()
    made.body = PAGE
    yield made
    made.end()


def test_the_machines_series_end_with_the_exporter_and_others_stay(
    exporter: Exporter, caplog: pytest.LogCaptureFixture
) -> None:
    collector = Collector(parts=("tasks", "machine"), machine=machine_source(exporter.address))

    def told() -> dict[str, float]:
        return {each.family: each.value for each in collector.collect(lambda *_: None).values}

    assert told()[NodeMetric.CLOCK] == -0.25
    exporter.status = 503
    after = told()
    assert not after.keys() & set(NodeMetric) and TaskMetric.TASKS in after
    told()
    assert (
        caplog.text.count("figures of the machine are missing: ValueError: node exporter answers with the status 503")
        == 1
    )
    exporter.status = 200
    assert told()[NodeMetric.CLOCK] == -0.25
    collector.close()


@pytest.mark.parametrize(
    ("status", "headers", "body", "said"),
    [
        (404, {}, PAGE, "node exporter answers with the status 404"),
        (302, {"Location": "http://127.0.0.1:1/"}, b"", "the status 302"),
        (200, {}, b"", "node exporter tells nothing of a machine"),
        (200, {}, b"<html><body>Node Exporter</body></html>", "tells nothing of a machine"),
        (200, {}, b"go_goroutines 7\nnode_load1 3\n", "tells nothing of a machine"),
        (200, {}, PAGE + b'corral_agent_rounds_total{collector="machine"} 3\n', "is that of a Corral agent"),
        (200, {}, b"#" * (MOST_BYTES + 1), "node exporter answers with more than 4 MiB"),
    ],
)
def test_what_is_no_page_of_node_exporter_is_refused(
    exporter: Exporter, status: int, headers: dict[str, str], body: bytes, said: str
) -> None:
    exporter.status, exporter.headers, exporter.body = status, headers, body
    with pytest.raises(ValueError, match=said):
        NodeExporterReader(exporter_url(exporter.address, NODE_EXPORTER)).read()


@pytest.mark.parametrize("text", ["127.0.0.1:9100", "ftp://host/metrics", "http://a:b@host/"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"of node exporter is written as http://127\.0\.0\.1:9100/metrics"):
        machine_source(text)


def test_a_page_of_more_interfaces_than_a_machine_has_is_cut() -> None:
    lines = [f'node_network_receive_bytes_total{{device="veth{at}"}} {at}' for at in range(MOST_LINES + 100)]
    assert len(parse_page("\n".join(lines).encode())) == MOST_LINES


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: f"node_cpu_seconds_total{{{text}".encode()))
def test_any_bytes_are_read_or_refused(page: bytes) -> None:
    try:
        found = parse_page(page)
    except ValueError:
        return
    assert found
