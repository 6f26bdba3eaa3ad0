"""Limits are enforced where the machine allows it, and running out of memory is reported as such."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from corral.engines.local import cgroups
from corral.engines.local.attempt_folder import AttemptFolder
from corral.engines.local.live_attempt import MEMORY_OVER, OUTSIDE
from tests.engines.local_harness import Harness, attempt, collect, launch, until

LONELY = 54_399
"""A uid that no other test uses, because the test counts its processes."""
EATER = (
    "import time\nx = bytearray(200 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\nprint('ate'); time.sleep(1000)"
)
MODEST = "x = bytearray(20 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\n"


async def test_a_task_over_its_memory_is_killed_and_says_so(local: Harness) -> None:
    end = await local.run(sys.executable, "-c", EATER, memory_bytes=64 << 20)
    assert (end.code, end.reason) == (-1200, MEMORY_OVER)
    assert (await local.run(sys.executable, "-c", MODEST, memory_bytes=64 << 20, task=1)).code == 0


async def test_without_control_groups_memory_is_watched(tmp_path: Path) -> None:
    async with Harness(tmp_path, use_cgroups=False) as local:
        end = await local.run(sys.executable, "-c", EATER, memory_bytes=64 << 20)
        assert (end.code, end.reason) == (-1200, MEMORY_OVER)
        assert (await local.run(sys.executable, "-c", MODEST, memory_bytes=64 << 20, task=1)).code == 0


async def test_groups_hold_the_task_not_the_shim_and_are_gone_after_it(local: Harness) -> None:
    if local.engine._cgroups is None:
        pytest.skip("this server may not make control groups here; run the tests as root to check them")
    await local.run("cat", "/proc/self/cgroup", "/proc/self/stat", memory_bytes=1 << 30, cpu_millis=500)
    assert f"/{attempt()}" in local.log()
    groups = local.engine._live[attempt()].record.cgroups
    assert groups and not any(os.path.exists(group) for group in groups)


async def test_a_task_without_limits_has_a_group_too_that_tells_its_processes(local: Harness) -> None:
    if local.engine._cgroups is None:
        pytest.skip("this server may not make control groups here; run the tests as root to check them")
    await local.run("cat", "/proc/self/cgroup")
    assert f"/{attempt()}" in local.log()


async def test_an_engine_that_closes_keeps_the_group_that_a_task_is_about_to_enter(local: Harness) -> None:
    if local.engine._cgroups is None:
        pytest.skip("this server may not make control groups here; run the tests as root to check them")
    groups = local.engine._cgroups.make(attempt(), 1 << 30, 500)
    await local.engine.close()
    assert all(os.path.isdir(group) for group in groups)


async def test_tasks_start_though_somebody_removed_the_empty_group_of_the_engine(local: Harness) -> None:
    if local.engine._cgroups is None:
        pytest.skip("this server may not make control groups here; run the tests as root to check them")
    for parent in local.engine._cgroups.parents:
        os.rmdir(parent)
    end = await local.run("cat", "/proc/self/cgroup", memory_bytes=1 << 30, cpu_millis=500)
    assert end.code == 0 and f"/{attempt()}" in local.log()


@pytest.mark.parametrize("adopted", [False, True])
async def test_a_task_that_cannot_enter_its_group_is_not_begun_without_its_limits(
    local: Harness, monkeypatch: pytest.MonkeyPatch, adopted: bool
) -> None:
    if local.engine._cgroups is None:
        pytest.skip("this server may not make control groups here; run the tests as root to check them")
    monkeypatch.setattr(local.engine._cgroups, "make", lambda *_: (str(local.folder / "no-group"),))
    await local.engine.start(launch("touch", str(local.folder / "begun")))
    if adopted:
        await until(AttemptFolder(str(local.folder / "engine/attempts"), attempt()).process)
        await local.abandon()
        async with Harness(local.folder) as second:
            end = await second.exited(attempt())
    else:
        end = await local.exited(attempt())
    assert (end.code, end.reason) == (-120, OUTSIDE)
    assert not (local.folder / "begun").exists() and local.log() == ""


def test_both_versions_write_the_limits_where_the_kernel_reads_them(tmp_path: Path) -> None:
    for folder in ("v2", "memory", "cpu", "pids"):
        (tmp_path / folder).mkdir()
    (group,) = cgroups.CgroupsV2(tmp_path / "v2").make(attempt(), 1000, 1500)
    assert Path(group, "memory.max").read_text() == "1000" and Path(group, "cpu.max").read_text() == "150000 100000"
    one = cgroups.CgroupsV1(tmp_path / "memory", tmp_path / "cpu", tmp_path / "pids")
    (tmp_path / "pids" / attempt()).mkdir()
    (tmp_path / "pids" / attempt() / "pids.max").touch()
    pids, memory, cpu = one.make(attempt(), 1000, 250, 77)
    assert Path(pids, "pids.max").read_text() == "77"
    assert Path(memory, "memory.limit_in_bytes").read_text() == "1000"
    assert Path(cpu, "cpu.cfs_quota_us").read_text() == "25000"


BOMB = "for i in $(seq 60); do sleep 1000 & done; echo bred; wait"


async def test_a_task_that_breeds_meets_its_limit_of_processes_and_others_do_not(tmp_path: Path) -> None:
    async with Harness(tmp_path, process_limit=20) as local:
        if local.engine._cgroups is None or not local.engine._cgroups.limits_processes:
            pytest.skip("this server may not count processes in control groups here; run the tests as root to check it")
        end = await local.run("sh", "-c", BOMB)
        assert end.code != 0 and "fork" in local.log() and "bred" not in local.log()
        assert (await local.run("sh", "-c", "sleep 0 & wait", task=1)).code == 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start tasks as other users; run as root")
async def test_without_control_groups_a_users_processes_are_limited() -> None:
    folder = Path(tempfile.mkdtemp())  # pytest's own folders are closed to other users
    folder.chmod(0o755)
    async with Harness(folder, process_limit=20, use_cgroups=False, uid_of=lambda user: LONELY) as local:
        end = await local.run("sh", "-c", BOMB)
        assert end.code != 0 and "fork" in local.log() and "bred" not in local.log()
        await local.engine.start(launch("sh", "-c", "sleep 0 & wait; echo up; exec sleep 1000", task=1))
        await local.line("up", attempt(1))
        session = await local.engine.exec(attempt(1), ["sh", "-c", BOMB], tty=False)
        printed = await collect(session.output())
        assert b"fork" in printed and b"bred" not in printed
        await session.close()
        await local.engine.stop(attempt(1), grace_seconds=0)
        await local.exited(attempt(1))
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("file", "text", "ran_out"),
    [
        ("memory.events", "low 0\noom 1\noom_kill 1\n", True),
        ("memory.events", "oom 3\noom_kill 0\n", False),
        ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", True),
        ("memory.oom_control", "oom_kill_disable 0\nunder_oom 1\n", False),
        ("other", "", False),
    ],
)
def test_the_kernels_own_count_tells_of_memory(tmp_path: Path, file: str, text: str, ran_out: bool) -> None:
    (tmp_path / file).write_text(text)
    assert cgroups.ran_out_of_memory((str(tmp_path),)) is ran_out


def test_without_control_groups_none_are_found(tmp_path: Path) -> None:
    assert cgroups.detect("corral", tmp_path / "nothing", tmp_path / "nowhere") is None


async def test_an_engine_leaves_no_group_of_its_own_when_nothing_runs(tmp_path: Path) -> None:
    async with Harness(tmp_path) as local:
        await local.run("true")
        name = cgroups.parent_name(tmp_path / "engine")
    assert not [*cgroups.ROOT.glob(f"{name}"), *cgroups.ROOT.glob(f"*/{name}")]
