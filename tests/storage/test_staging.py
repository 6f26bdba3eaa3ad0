"""Staging copies data completely, again only when needed, and never outside of its destination."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem

from corral.kernel.errors import InvalidInput, NotFound, Unavailable
from corral.storage.staging import Done, Progress, stage
from tests.storage.every_store import StoreSuite


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    (source / "deep/er").mkdir(parents=True)
    (source / "a.bin").write_bytes(os.urandom(5_000_000))
    (source / "deep/b.txt").write_text("b")
    (source / "deep/er/ü.txt").write_text("c")
    return source


def run(source: object, destination: object) -> Done:
    return stage(str(source), str(destination), Progress(io.StringIO()))


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class TestAFolder(StoreSuite):
    """A local folder, which may be a mounted NFS export."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}/store"


def test_a_tree_is_copied_and_a_second_run_copies_nothing(tree: Path, tmp_path: Path) -> None:
    assert run(f"file://{tree}", tmp_path / "there").files == 3
    assert files(tmp_path / "there") == files(tree)
    again = run(tree, f"file://{tmp_path}/there")
    assert (again.files, again.kept) == (0, 3)


def test_a_folder_that_cannot_be_listed_is_not_passed_over(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ls = LocalFileSystem.ls

    def closed(self: LocalFileSystem, path: str, *given: Any, **named: Any) -> Any:
        if str(path).endswith("deep/er"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return ls(self, path, *given, **named)

    monkeypatch.setattr(LocalFileSystem, "ls", closed)
    with pytest.raises(Unavailable, match="Permission denied"):
        run(tree, tmp_path / "there")


def test_a_file_is_copied_to_the_name_given(tree: Path, tmp_path: Path) -> None:
    assert run(tree / "a.bin", tmp_path / "new/name").files == 1
    assert (tmp_path / "new/name").read_bytes() == (tree / "a.bin").read_bytes()


def test_what_changed_or_was_damaged_is_copied_again(tree: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    run(tree, there)
    (there / "deep/b.txt").write_text("damaged")
    (tree / "deep/er/ü.txt").write_text("d")
    os.utime(tree / "deep/er/ü.txt", (2_000_000_000, 2_000_000_000))
    assert run(tree, there).files == 2
    assert files(there) == files(tree)


def test_a_copy_that_was_cut_off_goes_on_where_it_stopped(tree: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    part = there / "a.bin.corral-part"
    marked = b"\0" * 1_000_000  # shows that this part was not copied again
    part.write_bytes(marked)
    run(tree, there)
    content = (there / "a.bin").read_bytes()
    assert content[:1_000_000] == marked and content[1_000_000:] == (tree / "a.bin").read_bytes()[1_000_000:]
    assert not part.exists()


def test_a_part_of_an_older_source_is_thrown_away(tree: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / "a.bin.corral-part").write_bytes(b"old")
    os.utime(there / "a.bin.corral-part", (1, 1))
    run(tree, there)
    assert files(there) == files(tree)


def test_a_link_that_leads_outside_is_refused_and_one_inside_is_copied(tree: Path, tmp_path: Path) -> None:
    (tree / "inside").symlink_to("deep/b.txt")
    run(tree, tmp_path / "there")
    assert (tmp_path / "there/inside").read_text() == "b"
    (tree / "outside").symlink_to("/etc/passwd")
    with pytest.raises(InvalidInput, match="link that leads outside"):
        run(tree, tmp_path / "there2")


@pytest.mark.parametrize(
    ("source", "message"), [("gopher://host/x", "gopher: cannot be staged"), ("file://host/x", "names a host")]
)
def test_places_that_cannot_be_reached_are_refused(tmp_path: Path, source: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        run(source, tmp_path / "x")


def test_missing_data_and_unwritable_places_are_told(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="nothing at"):
        run(tmp_path / "none", tmp_path / "x")
    (tmp_path / "file").touch()
    with pytest.raises(Unavailable, match="could not be copied"):
        run(tree, tmp_path / "file/below")


def test_the_command_answers_by_its_exit_code(tree: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "corral.storage", "stage"]
    good = subprocess.run([*command, str(tree), str(tmp_path / "x")], capture_output=True, text=True, check=False)
    assert good.returncode == 0 and "staged 3 files" in good.stderr
    bad = subprocess.run([*command, str(tmp_path / "no"), "y"], capture_output=True, text=True, check=False)
    assert bad.returncode == 1 and bad.stderr == f"corral: There is nothing at {tmp_path}/no.\n"
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2


def test_a_long_copy_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    told = io.StringIO()
    progress = Progress(told)
    progress._next = 0.0
    progress.at(Done(files=3, bytes=50), 10, 200)
    progress.at(Done(files=4, bytes=60), 10, 200)
    assert told.getvalue() == "corral: staging 25 %, 3 of 10 files\n"
