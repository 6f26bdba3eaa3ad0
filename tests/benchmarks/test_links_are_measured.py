"""Links between devices and by RDMA: figures from tables, what changes on the way, and nodes that have none."""

from __future__ import annotations

import shutil
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from corral.benchmarks.programs import kernel_launch, peers, rdma
from corral.benchmarks.programs.given import Given, NotMeasurable
from tests.benchmarks.made_up_devices import made_up_torch
from tests.benchmarks.test_programs_measure import begin, told
from tests.reserved import free_port

BANDWIDTH = """
 WARNING: BW peak won't be measured in this run.
---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : mlx5_0
 Number of qps   : 1\t\tTransport type : IB
 Connection type : RC\t\tUsing SRQ      : OFF
 Link type       : IB
---------------------------------------------------------------------------------------
 local address: LID 0x62ca QPN 0x19e1 PSN 0xb814bc RKey 0x203d00 VAddr 0x0055b6cc722000
 remote address: LID 0x6406 QPN 0x1652 PSN 0xb6e71d RKey 0x203d00 VAddr 0x0055b6cc722000
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
Conflicting CPU frequency values detected: 1500.000000 != 3100.000000. CPU Frequency is not max.
 65536      1000             198.45             197.60\t\t   0.376892
---------------------------------------------------------------------------------------
"""
LATENCY = """
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] 
 8       1000          1.65           6.25         1.67     \t       1.70        \t0.28   \t\t3.52    \t\t6.25   
---------------------------------------------------------------------------------------
"""  # noqa: E501, W291 - as perftest prints it


def given(parameters: dict[str, int], addresses: tuple[str, ...] = (), rank: int = 0) -> Given:
    return Given(rank, len(addresses) or 1, 0, addresses, parameters, ())


def test_rates_and_latencies_of_ways_between_devices_and_the_worst_of_them() -> None:
    seconds = {(0, 1): (0.5, 2e-6), (1, 0): (0.25, 3e-6)}
    assert peers.figures_of(10**9, seconds) == pytest.approx(
        {
            "peer_0_1_bw": 2.0,
            "peer_1_0_bw": 4.0,
            "min_peer_bw": 2.0,
            "peer_0_1_lat": 2.0,
            "peer_1_0_lat": 3.0,
            "max_peer_lat": 3.0,
        }
    )


def test_each_two_devices_are_measured_in_both_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", made_up_torch(3))
    figures = peers.measure(given({"size_mib": 1, "repeat": 1}))
    ways = {f"peer_{one}_{two}_{what}" for one in range(3) for two in range(3) if one != two for what in ("bw", "lat")}
    assert set(figures) == ways | {"min_peer_bw", "max_peer_lat"}
    assert figures["min_peer_bw"] == min(value for name, value in figures.items() if name.endswith("_bw")) > 0


def test_a_link_that_changes_bytes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = made_up_torch(3, changed=lambda source, target: (source.device, target.device) == (2, 1))
    monkeypatch.setitem(sys.modules, "torch", torch)
    with pytest.raises(ArithmeticError, match="from device 2 to device 1"):
        peers.measure(given({"size_mib": 1, "repeat": 1}))


def test_one_device_has_no_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", made_up_torch(1))
    with pytest.raises(NotMeasurable, match="one device"):
        peers.measure(given({"size_mib": 1, "repeat": 1}))


def test_launches_are_timed_on_the_host_and_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", made_up_torch(1))
    figures = kernel_launch.measure(given({"launches": 10, "repeat": 2}))
    assert set(figures) == {"wall_time", "event_time", "queued_time"} and figures["event_time"] == 0.5
    assert figures["wall_time"] > 0 and figures["queued_time"] > 0


def test_a_kernel_that_did_not_run_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", made_up_torch(1, lost_after=59))
    with pytest.raises(ArithmeticError, match="kernels were lost"):
        kernel_launch.measure(given({"launches": 10, "repeat": 2}))


@pytest.mark.parametrize("name", ["mem-bw", "kernel-launch", "peer-bw"])
@pytest.mark.parametrize(
    ("devices", "code", "problems", "left_out"),
    [
        ("", 0, (), ("Devices are not measured: the task has none.",)),
        ("0,1", 1, ("rank 0: RuntimeError: PyTorch finds no device here, and the task has 2",), ()),
    ],
)
def test_a_node_without_devices_is_no_fault_and_one_whose_devices_are_not_found_is(
    tmp_path: Path, name: str, devices: str, code: int, problems: tuple[str, ...], left_out: tuple[str, ...]
) -> None:
    (tmp_path / "torch.py").write_text("class cuda:\n    is_available = staticmethod(lambda: False)\n")
    parameters = {"size_mib": 1, "repeat": 1, "launches": 1}
    process = begin(tmp_path, name, parameters=parameters, PYTHONPATH=str(tmp_path), CORRAL_DEVICES=devices)
    ended, found = told(process, name)
    assert (ended, found.problems, found.left_out) == (code, problems, left_out)
    assert found.metrics == {f"{name}/return_code": float(code)}


@pytest.mark.parametrize(
    ("program", "text", "figure"),
    [
        ("ib_write_bw", BANDWIDTH, 197.6),
        ("ib_write_bw", BANDWIDTH.replace("198.45", "0.00"), 197.6),
        ("ib_write_lat", LATENCY, 1.67),
    ],
)
def test_the_figure_of_perftests_table_is_read(program: str, text: str, figure: float) -> None:
    assert rdma.told_by(program, text) == figure


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it said nothing"),
        (" Did not detect devices \n Unable to find the Infiniband/RoCE device\n", "Unable to find the Infiniband"),
        (BANDWIDTH.replace("197.60", "nan"), "told no BW average"),
        (BANDWIDTH.replace("197.60", "0.00"), "told no BW average"),
        (BANDWIDTH.replace("Gb/sec", "MB/sec"), "told no BW average"),
        (BANDWIDTH.partition("Conflicting")[0], "told no BW average"),
    ],
)
def test_an_output_without_a_figure_is_told_with_what_it_says(text: str, why: str) -> None:
    with pytest.raises(RuntimeError, match=why):
        rdma.told_by("ib_write_bw", text)


def with_port(folder: Path, device: str, port: str, state: str) -> None:
    there = folder / device / "ports" / port
    there.mkdir(parents=True)
    (there / "state").write_text(f"{state}\n")


def test_the_first_device_with_an_active_port_is_measured(tmp_path: Path) -> None:
    assert rdma.device_of(tmp_path / "absent") is None
    with_port(tmp_path, "mlx5_0", "1", "1: DOWN")
    assert rdma.device_of(tmp_path) is None
    with_port(tmp_path, "mlx5_1", "1", "2: INIT")
    with_port(tmp_path, "mlx5_1", "2", "4: ACTIVE")
    with_port(tmp_path, "mlx5_2", "1", "4: ACTIVE")
    assert rdma.device_of(tmp_path) == ("mlx5_1", 2)


def test_tasks_without_rdma_devices_say_so_and_nothing_fails(tmp_path: Path) -> None:
    gang = ",".join(f"127.0.0.1:{free_port()}" for _ in range(2))
    parameters = {"size_kib": 4, "iterations": 5}
    tasks = [begin(tmp_path, "rdma-bw", f"--gang={gang}", index=index, parameters=parameters) for index in (1, 0)]
    (other, _), (code, first) = [told(task, "rdma-bw") for task in tasks]
    if Path("/sys/class/infiniband").exists():
        pytest.skip("this machine may have an RDMA device")
    assert (code, other, first.problems) == (0, 0, ())
    assert first.left_out == ("RDMA is not measured: there is no RDMA device with an active port on any of the nodes.",)


def measured(folder: Path, monkeypatch: pytest.MonkeyPatch, tasks: int) -> list[dict[str, float] | BaseException]:
    """What each task of a gang measures in a thread, with these RDMA devices."""
    monkeypatch.setattr(rdma, "_DEVICES", folder)
    addresses = tuple(f"127.0.0.1:{free_port()}" for _ in range(tasks))
    parameters = {"size_kib": 64, "iterations": 1000}
    with ThreadPoolExecutor(tasks) as threads:
        each = [threads.submit(rdma.measure, given(parameters, addresses, rank)) for rank in range(tasks)]
        return [future.exception(250) or future.result() for future in each]


_STAND_IN = """#!{python}
import pathlib, socket, sys
words = sys.argv[1:]
port = int(next(word for word in words if word.startswith("--port=")).partition("=")[2])
assert "--ib-dev=mlx5_1" in words and "--ib-port=2" in words
if words[-1].startswith("--"):
    with socket.create_server(("", port)) as door:
        door.accept()[0].recv(1)
else:
    try:
        socket.create_connection((words[-1], port)).sendall(b"x")
    except OSError:
        sys.exit(f"Couldn't connect to {{words[-1]}}:{{port}}")
print(pathlib.Path(sys.argv[0] + ".txt").read_text())
"""


def test_every_pair_is_measured_by_the_programs_of_perftest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs are stand-ins that print what perftest printed elsewhere."""
    with_port(tmp_path / "devices", "mlx5_1", "2", "4: ACTIVE")
    for name, text in (("ib_write_bw", BANDWIDTH), ("ib_write_lat", LATENCY)):
        (tmp_path / name).write_text(_STAND_IN.format(python=sys.executable))
        (tmp_path / name).chmod(stat.S_IRWXU)
        (tmp_path / f"{name}.txt").write_text(text)
    monkeypatch.setenv("PATH", str(tmp_path))
    first, *others = measured(tmp_path / "devices", monkeypatch, 3)
    pairs = {f"pair_{one}_{two}" for one, two in ((0, 1), (0, 2), (1, 2))}
    wanted = {f"{pair}_bw": 24.7 for pair in pairs} | {f"{pair}_lat": 1.67 for pair in pairs}
    assert first == pytest.approx(wanted | {"min_pair_bw": 24.7, "max_pair_lat": 1.67})
    assert others == [{}, {}]


def test_perftest_that_fails_is_told_with_its_last_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("ib_write_lat") is None:
        pytest.skip("perftest is not here: apt-get install perftest")
    with_port(tmp_path, "mlx5_made_up", "1", "4: ACTIVE")
    first, other = measured(tmp_path, monkeypatch, 2)
    assert isinstance(first, RuntimeError)
    assert str(first) == "ib_write_lat to 127.0.0.1: Unable to find the Infiniband/RoCE device"
    assert other == {}
