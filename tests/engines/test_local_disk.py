"""A task whose working folder exceeds its disk limit is ended, with a message."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.engines.local import disk
from tests.engines.local_harness import Harness, launch

WRITE = "dd if=/dev/zero of=big bs=1M count=4 2>/dev/null; echo wrote; exec sleep 1000"


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "SECONDS", 0.1)


async def test_a_task_that_fills_its_working_folder_is_ended_and_told_why(tmp_path: Path) -> None:
    async with Harness(tmp_path, folder_limit_bytes=3 << 20) as local:
        end = await local.run("sh", "-c", WRITE)
        assert (end.code, end.signal) == (220, 9)
        assert end.reason.startswith("its working folder held more than 0.00293 GiB (folder_limit_bytes)")


async def test_tasks_below_the_bound_or_writing_elsewhere_go_on(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with Harness(tmp_path, folder_limit_bytes=6 << 20) as local:
        ending = launch("sh", "-c", WRITE.replace("exec sleep 1000", "read line < go"))
        os.mkfifo(elsewhere / "go")
        await local.engine.start(ending)
        await local.line("wrote")
        assert (
            await local.run("sh", "-c", f"cd {elsewhere}; {WRITE.replace('exec sleep 1000', '')}", task=1)
        ).code == 0
        assert (await local.run("sh", "-c", f"{WRITE};".replace("=4 ", "=9 "), task=2)).code == 220
        assert ending.attempt in local.engine._live, "the one below is ended by nobody"


def test_a_file_is_counted_once_and_other_folders_are_not_followed(tmp_path: Path) -> None:
    folder, other = tmp_path / "folder", tmp_path / "other"
    (folder / "deep" / "er").mkdir(parents=True)
    other.mkdir()
    (other / "big").write_bytes(bytes(8 << 20))
    (folder / "deep" / "er" / "one").write_bytes(bytes(1 << 20))
    os.link(folder / "deep" / "er" / "one", folder / "again")
    (folder / "away").symlink_to(other)
    (folder / "sparse").touch()
    os.truncate(folder / "sparse", 1 << 40)
    assert 1 << 20 <= disk.Walk(str(folder)).look(1 << 40) < 2 << 20
    assert disk.Walk(str(folder / "gone")).look(1) == 0
    assert disk.over_limit({"a": str(folder), "b": str(other)}, 4 << 20, {}) == ["b"]


def test_a_folder_of_endless_files_costs_a_bounded_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_ENTRIES", 50)
    looked: list[str] = []
    real = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: looked.append(str(path)) or real(path))
    for number in range(200):
        (tmp_path / f"d{number}").mkdir()
    disk.Walk(str(tmp_path)).look(1 << 40)
    assert len(looked) <= 51


def test_what_lies_behind_many_files_is_found_by_a_later_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_ENTRIES", 50)
    for number in range(200):
        (tmp_path / f"f{number}").touch()
    deep = tmp_path / "deep"
    deep.mkdir()
    (deep / "big").write_bytes(bytes(1 << 20))
    walks: dict[str, disk.Walk] = {}
    found = [disk.over_limit({"a": str(tmp_path)}, 500_000, walks) for _ in range(5)]
    assert found == [[], [], [], [], ["a"]] and walks == {}
    disk.over_limit({"a": str(tmp_path)}, 1 << 40, walks)
    assert disk.over_limit({}, 1 << 40, walks) == [] and walks == {}


def test_a_file_that_goes_while_it_is_looked_at_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        (tmp_path / f"f{number}").write_bytes(bytes(8192))
    real = os.scandir
    gone: list[str] = []

    @contextlib.contextmanager
    def racing(path: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        with real(path) as entries:
            there = list(entries)
        os.unlink(there[3].path)
        gone.append(there[3].name)
        yield iter(there)

    monkeypatch.setattr(os, "scandir", racing)
    assert disk.Walk(str(tmp_path)).look(1 << 40) >= 19 * 8192 and gone
