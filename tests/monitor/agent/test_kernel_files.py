"""The kernel's files are parsed, and broken or missing ones give no figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.monitor.agent.bounded_files import numbers, read_bytes, read_number, read_text, whole
from corral.monitor.agent.control_group import (
    GroupFigures,
    GroupPaths,
    blkio_bytes,
    group_figures,
    group_paths,
    io_bytes,
)
from corral.monitor.agent.machine_files import (
    FileSystem,
    Port,
    cpu_seconds,
    disk_bytes,
    file_systems,
    interface_bytes,
    memory_bytes,
    rdma_ports,
)
from corral.monitor.agent.task_processes import Process, marked_attempt, parse_stat

ATTEMPT = "0123456789abc.0.worker.3.1"
STAT = b"77 (a) S (b) S 1 77 77 0 -1 4194304 100 200 0 0 250 150 30 20 20 0 6 0 4242 1000 200 18446744073709551615"


def test_a_file_that_is_missing_or_a_folder_is_empty(tmp_path: Path) -> None:
    assert read_bytes(str(tmp_path / "none")) == b"" and read_text(str(tmp_path)) == ""
    (tmp_path / "long").write_text("7" * 100)
    assert read_text(str(tmp_path / "long"), 10) == "7777777777"
    for text, value in (("12\n", 12), ("max\n", None), ("", None), ("1" * 30, None), ("-5", -5), ("٣", None)):
        (tmp_path / "number").write_text(text)
        assert read_number(str(tmp_path / "number")) == value


def test_numbers_are_found_by_name() -> None:
    lines = ["RssAnon:\t  12 kB", "Name: 9", "shmem 4096", "broken", "empty:"]
    assert numbers(lines, "RssAnon", "shmem", "broken", "empty") == {"RssAnon": 12, "shmem": 4096}


def test_a_process_line_is_parsed() -> None:
    assert parse_stat(STAT) == Process(77, 4242, 450, 6)
    for broken in (b"", b"77 (a", STAT.replace(b"S 1", b"Z 1"), STAT[:60], STAT.replace(b"4242", b"x")):
        assert parse_stat(broken) is None


@pytest.mark.parametrize(
    ("environment", "attempt"),
    [
        (f"A=1\0CORRAL_ATTEMPT={ATTEMPT}\0B=2", ATTEMPT),
        (f"CORRAL_ATTEMPT={ATTEMPT}", ATTEMPT),
        (f"NOT_CORRAL_ATTEMPT={ATTEMPT}\0", None),
        ("CORRAL_ATTEMPT=made-up\0", None),
        ("CORRAL_ATTEMPT=a.b.c.d.e\0", None),
        (f"CORRAL_ATTEMPT=0123456789abc.0.{'w' * 300}.3.1\0", None),
        ("", None),
    ],
)
def test_an_attempt_is_read_from_an_environment(environment: str, attempt: str | None) -> None:
    assert marked_attempt(environment.encode()) == attempt


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        (f"0::/corral-1/{ATTEMPT}\n", GroupPaths(unified=f"R/corral-1/{ATTEMPT}")),
        (f"0::/corral-1/{ATTEMPT}/deeper\n", GroupPaths(unified=f"R/corral-1/{ATTEMPT}")),
        ("0::/kubepods/burstable/podX/c0ffee\n", GroupPaths(unified="R/kubepods/burstable/podX/c0ffee")),
        (f"4:memory:/c/{ATTEMPT}\n3:cpu,cpuacct:/\n0::/\n", GroupPaths(memory=f"R/memory/c/{ATTEMPT}")),
        ("0::/user.slice/session-1.scope\n", GroupPaths()),
        (f"0::/../{ATTEMPT}\n", GroupPaths()),
        ("", GroupPaths()),
    ],
)
def test_a_tasks_own_groups_are_found(text: str, paths: GroupPaths) -> None:
    assert group_paths(text, ATTEMPT, "R") == paths


def test_a_group_of_version_2_is_read(tmp_path: Path) -> None:
    files = {
        "cpu.stat": "usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\n",
        "memory.current": "10485760\n",
        "memory.max": "max\n",
        "memory.stat": "anon 5\nshmem 4096\ninactive_file 1048576\n",
        "io.stat": "253:0 rbytes=4096 wbytes=8192 rios=1 wios=2\n253:16 rbytes=1 wbytes=2\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    paths = GroupPaths(unified=str(tmp_path))
    assert group_figures(paths) == GroupFigures(2.5, 10485760 - 1048576, None, 4096, 4097, 8194)
    (tmp_path / "memory.max").write_text("20971520\n")
    (tmp_path / "io.stat").unlink()
    assert group_figures(paths) == GroupFigures(2.5, 9437184, 20971520, 4096, None, None)
    assert group_figures(GroupPaths(unified=str(tmp_path / "none"))) == GroupFigures()


def test_groups_of_version_1_are_read(tmp_path: Path) -> None:
    files = {
        "memory/memory.usage_in_bytes": "5000",
        "memory/memory.limit_in_bytes": "9223372036854771712",
        "memory/memory.stat": "inactive_file 9\ntotal_inactive_file 1000\ntotal_shmem 77\n",
        "cpuacct/cpuacct.usage": "1500000000",
        "blkio/blkio.throttle.io_service_bytes": "253:0 Read 10\n253:0 Write 20\n253:0 Total 30\n8:0 Read 1\nTotal 31\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    paths = GroupPaths("", *(str(tmp_path / name) for name in ("memory", "cpuacct", "blkio")))
    assert group_figures(paths) == GroupFigures(1.5, 4000, None, 77, 11, 20)
    assert group_figures(GroupPaths(cpuacct=paths.cpuacct)) == GroupFigures(1.5)


def test_the_machines_files_are_read() -> None:
    assert memory_bytes("MemTotal:  100 kB\nHugePages_Total: 0\nbroken\n")["MemTotal"] == 102400
    text = "cpu  9 9 9\ncpu0 100 1 50 700 2 0 3 0 0 0\ncpu1 x\nintr 5\n"
    assert list(cpu_seconds(text, 100))[:4] == [
        ("0", "user", 1.0), ("0", "nice", 0.01), ("0", "system", 0.5), ("0", "idle", 7.0),
    ]  # fmt: skip
    disks = (
        " 253 0 vda 10 0 8 1 20 0 16 1 0 1 1\n 253 1 vda1 1 0 8 1 1 0 8 1 0 1 1\n 7 0 loop0 1 0 2 1 1 0 8 1 0 1 1\n"
        " 259 0 nvme0n1 1 0 2 1 1 0 4 1 0 1 1\n 259 1 nvme0n1p1 1 0 2 1 1 0 4 1 0 1 1\nbroken\n"
    )
    assert disk_bytes(disks) == {"vda": (4096, 8192), "nvme0n1": (1024, 2048)}
    networks = "head\nhead\n  lo: 1 0 0 0 0 0 0 0 2 0\neth0:100 1 0 0 0 0 0 0 200 2\nbroken: 1\n"
    assert interface_bytes(networks) == {"eth0": (100, 200)}
    mounts = "/dev/vda / ext4 rw 0 0\n/dev/vda /again ext4 rw 0 0\nproc /proc proc rw 0 0\nsrv:/x /n nfs4 rw 0 0\n"
    assert file_systems(mounts + "/dev/vdb /my\\040disk xfs rw 0 0\nx\n") == [
        FileSystem("/dev/vda", "ext4", "/"), FileSystem("/dev/vdb", "xfs", "/my disk"),
    ]  # fmt: skip


def test_rdma_ports_are_read(tmp_path: Path) -> None:
    counters = tmp_path / "mlx5_0" / "ports" / "1" / "counters"
    counters.mkdir(parents=True)
    (tmp_path / "mlx5_1").mkdir()
    (counters.parent / "state").write_text("4: ACTIVE\n")
    for name, value in (("port_rcv_data", 1000), ("port_xmit_data", 2000), ("link_downed", 3)):
        (counters / name).write_text(f"{value}\n")
    assert rdma_ports(str(tmp_path)) == [Port("mlx5_0", "1", 4, 4000, 8000, 3, None)]
    assert rdma_ports(str(tmp_path / "none")) == []


@given(st.text(max_size=300))
def test_no_text_breaks_a_parser(text: str) -> None:
    lines = text.splitlines()
    numbers(lines)
    whole(text)
    list(cpu_seconds(text, 100))
    for parse in (memory_bytes, disk_bytes, interface_bytes, file_systems, io_bytes, blkio_bytes):
        parse(text)
    group_paths(text, ATTEMPT)
    parse_stat(text.encode())
    marked_attempt(text.encode())
