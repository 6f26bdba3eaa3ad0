"""Event files in a folder of somebody else: read as they grow, never beyond the folder or its bounds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from corral.runtime import event_folder as bounds
from corral.runtime.event_folder import Allowance, EventFolder
from tests.runtime.event_files.encoder import NAME, event, header, part, record, scalars, write

AT = 1_764_028_800.0


class Follower:
    """Looks into a folder; `said` are run, tag and value of what was new in each look."""

    def __init__(self, path: Path) -> None:
        self.folder = EventFolder(str(path))

    def said(self, since: float = 0.0, bytes: int = 1 << 30, events: int = 1 << 30) -> list[tuple[str, str, float]]:
        points = self.folder.look(since, Allowance(bytes, events))
        return [(each.run, each.scalar.tag, each.scalar.value) for each in points]


@pytest.fixture
def follower(tmp_path: Path) -> Follower:
    return Follower(tmp_path / "work")


def test_each_scalar_is_told_once_as_files_grow(follower: Follower, tmp_path: Path) -> None:
    assert follower.said() == []
    path = write(tmp_path / "work/runs/one", header(AT) + scalars((AT, "loss", 3.0)))
    assert follower.said() == [("runs/one", "loss", 3.0)] and follower.said() == []
    with path.open("ab") as file:
        file.write(scalars((AT + 1, "loss", 2.0), (AT + 2, "rate", 0.5)))
    write(tmp_path / "work", scalars((AT + 3, "loss", 1.0)))
    assert follower.said() == [("", "loss", 1.0), ("runs/one", "loss", 2.0), ("runs/one", "rate", 0.5)]


def test_a_record_that_is_cut_off_is_told_when_the_rest_is_there(follower: Follower, tmp_path: Path) -> None:
    first, second = scalars((AT, "loss", 3.0)), scalars((AT, "loss", 2.0))
    for end in range(len(second)):
        path = write(tmp_path / "work", first + second[:end], f"{NAME}.{end}")
        one = Follower(tmp_path / "work")
        assert one.said() == [("", "loss", 3.0)]
        path.write_bytes(first + second)
        assert one.said() == [("", "loss", 2.0)] and not one.folder.broken()
        path.unlink()


def test_a_file_that_was_replaced_is_read_anew(follower: Follower, tmp_path: Path) -> None:
    path = write(tmp_path / "work", scalars((AT, "loss", 3.0), (AT, "loss", 2.0)))
    assert len(follower.said()) == 2
    path.write_bytes(scalars((AT, "loss", 1.0)))
    assert follower.said() == [("", "loss", 1.0)]
    write(tmp_path, scalars((AT, "loss", 0.5), (AT, "loss", 0.25), (AT, "loss", 0.125)), "new").rename(path)
    assert [value for _, _, value in follower.said()] == [0.5, 0.25, 0.125]


def test_a_damaged_value_is_passed_over_and_a_damaged_length_ends_the_file(follower: Follower, tmp_path: Path) -> None:
    bad = bytearray(scalars((AT, "loss", 9.0)))
    bad[-6] ^= 1
    write(tmp_path / "work", bytes(bad) + scalars((AT, "loss", 1.0)))
    assert follower.said() == [("", "loss", 1.0)] and not follower.folder.broken()
    write(tmp_path / "work", b"this is no event file of anybody", "tfevents")
    write(tmp_path / "work", scalars((AT, "rate", 1.0)) + b"\0" * 40, f"{NAME}.zeros")
    assert follower.said() == [("", "rate", 1.0)]
    assert follower.folder.broken() == ["the checksum of a record's length is wrong"] * 2
    assert follower.said() == []


def test_what_is_old_and_what_is_large_costs_nothing(follower: Follower, tmp_path: Path) -> None:
    large = record(event(AT, part(1, b"graph") + part(100, b"x" * (bounds.LONGEST_DECODED + 1))))
    path = write(tmp_path / "work", scalars((AT - 100, "loss", 9.0)) + large + scalars((AT, "loss", 1.0)))
    assert follower.said(since=AT - 50, events=1) == [("", "loss", 1.0)]
    with path.open("ab") as file:
        file.write(large[:1000])
    assert follower.said() == []
    with path.open("ab") as file:
        file.write(large[1000:] + scalars((AT, "loss", 0.5)))
    assert follower.said() == [("", "loss", 0.5)]


def test_a_file_that_nobody_has_written_lately_is_not_read_until_it_grows(follower: Follower, tmp_path: Path) -> None:
    path = write(tmp_path / "work", scalars((AT - 100, "loss", 3.0), (AT - 1, "loss", 2.0)))
    os.utime(path, (AT - 100, AT - 100))
    assert follower.said(since=AT - 50) == []
    os.utime(path, (AT, AT))
    assert follower.said(since=AT - 50) == [("", "loss", 2.0)]


def test_what_one_look_may_not_read_is_read_in_the_next(follower: Follower, tmp_path: Path) -> None:
    write(tmp_path / "work", scalars(*((AT, "loss", float(value)) for value in range(10))))
    found = [[value for _, _, value in follower.said(events=4)] for _ in range(4)]
    assert found == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9], []]
    one = Follower(tmp_path / "work")
    assert len(one.said(bytes=1)) == 10 and one.said(bytes=0) == []  # bytes are counted when they were read


def test_nothing_outside_of_the_folder_is_read_and_nothing_that_is_no_file(follower: Follower, tmp_path: Path) -> None:
    secret = write(tmp_path / "elsewhere", scalars((AT, "secret", 1.0)))
    work = tmp_path / "work"
    (work / "runs").mkdir(parents=True)
    (work / NAME).symlink_to(secret)
    (work / "linked").symlink_to(tmp_path / "elsewhere")
    os.link(secret, work / "runs" / NAME)
    os.mkfifo(work / "runs" / "tfevents.pipe")
    (work / "tfevents.folder").mkdir()
    write(work / ".hidden", scalars((AT, "hidden", 1.0)))
    write(work, scalars((AT, "other", 1.0)), "events.out.other")
    write(work / "ok", scalars((AT, "own", 1.0)))
    assert follower.said() == [("ok", "own", 1.0)]
    (tmp_path / "link").symlink_to(work)
    assert Follower(tmp_path / "link").said() == []


def test_a_folder_that_becomes_a_link_meanwhile_is_not_followed(
    follower: Follower, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "elsewhere", scalars((AT, "secret", 1.0)))
    write(tmp_path / "work/run", scalars((AT, "own", 1.0)))
    opened = bounds._opened

    def swapped(top: int, parts: tuple[str, ...], *more: Any, **named: Any) -> object:
        if parts:
            (tmp_path / "work/run").rename(tmp_path / "work/.gone")
            (tmp_path / "work/run").symlink_to(tmp_path / "elsewhere")
        return opened(top, parts, *more, **named)

    monkeypatch.setattr(bounds, "_opened", swapped)
    assert follower.said() == []


def test_files_curves_depth_and_entries_are_bounded(follower: Follower, tmp_path: Path) -> None:
    work = tmp_path / "work"
    write(work, scalars(*((AT, f"tag-{number:03}", 1.0) for number in range(bounds.MOST_CURVES + 3))))
    assert len(follower.said()) == bounds.MOST_CURVES and follower.folder.left_out == 3
    for number in range(bounds.MOST_FILES + 3):
        write(tmp_path / "many", scalars((AT, "loss", float(number))), f"tfevents.{number:03}")
    assert len(Follower(tmp_path / "many").said()) == bounds.MOST_FILES
    deep = tmp_path / "deep"
    for level in range(bounds.DEEPEST + 2):
        write(deep, scalars((AT, f"level-{level}", 1.0)))
        deep /= "d"
    assert len(Follower(tmp_path / "deep").said()) == bounds.DEEPEST + 1
    for number in range(bounds.MOST_ENTRIES):
        (tmp_path / "full").mkdir(exist_ok=True)
        (tmp_path / "full" / f"a{number:05}").touch()
    write(tmp_path / "full", scalars((AT, "loss", 1.0)), "z.tfevents")
    assert Follower(tmp_path / "full").said() == []


def test_no_descriptor_is_left_open(follower: Follower, tmp_path: Path) -> None:
    write(tmp_path / "work/runs/one", scalars((AT, "loss", 1.0)))
    write(tmp_path / "work/runs/two", b"broken, and long enough for a header")
    follower.said()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        Follower(tmp_path / "work").said()
    assert len(os.listdir("/proc/self/fd")) == before
