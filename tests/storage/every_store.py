"""What staging does with every store: a suite that each store's tests inherit, with a fixture `store`."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem

from corral.kernel.errors import NotFound, Unavailable
from corral.storage import staging
from corral.storage.staging import Done, Progress, stage

ODD = {"a.bin": os.urandom(300_000), "empty": b"", "deep/ü #1?;%41 [x].txt": b"b", "deep/er/ü #2": b"cc"}
LONG_AGO = 1_000_000_000
"""S3's times are whole seconds: within one, the newer of two files is unknown."""


class StoreSuite:
    """The fixture `store` is the URI of an empty folder of the store, which the environment opens."""

    small_files = 300
    """Files of the test of many small ones: several for each thread, and more than connections are kept."""

    def test_a_tree_goes_there_and_comes_back_and_is_moved_once(self, store: str, tmp_path: Path) -> None:
        tree = made(tmp_path / "tree", ODD)
        assert moved(tree, f"{store}/run/1").files == len(ODD)
        again = moved(tree, f"{store}/run/1")
        assert (again.files, again.kept) == (0, len(ODD))
        moved(f"{store}/run/1", tmp_path / "back")
        assert files(tmp_path / "back") == ODD
        assert moved(f"{store}/run/1", tmp_path / "back").kept == len(ODD)

    def test_a_file_that_is_newer_or_of_another_size_replaces_the_one_there(self, store: str, tmp_path: Path) -> None:
        tree = made(tmp_path / "tree", {"same": b"1111", "longer": b"22", "newer": b"3333"})
        moved(tree, f"{store}/it")
        (tree / "longer").write_bytes(b"22222")
        (tree / "newer").write_bytes(b"4444")
        os.utime(tree / "newer", (2 * LONG_AGO, 2 * LONG_AGO))
        assert moved(tree, f"{store}/it").kept == 1
        moved(f"{store}/it", tmp_path / "back")
        assert files(tmp_path / "back") == {"same": b"1111", "longer": b"22222", "newer": b"4444"}

    def test_one_file_is_one_file_and_nothing_is_not_found(self, store: str, tmp_path: Path) -> None:
        made(tmp_path, {"one": b"1"})
        moved(tmp_path / "one", f"{store}/single")
        moved(f"{store}/single", tmp_path / "there" / "name")
        assert (tmp_path / "there" / "name").read_bytes() == b"1"
        with pytest.raises(NotFound, match=f"There is nothing at {store}/none"):
            moved(f"{store}/none", tmp_path / "x")

    def test_a_copy_that_was_cut_off_shows_no_file_and_is_completed_later(
        self, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        content = os.urandom(500_000)
        tree = made(tmp_path / "tree", {"big": content})
        monkeypatch.setattr(staging, "_CHUNK", 100_000)
        with monkeypatch.context() as cut:
            cut.setattr(LocalFileSystem, "open", breaking(LocalFileSystem.open, 300_000))
            with pytest.raises(Unavailable, match="the disk is gone"):
                moved(tree, f"{store}/cut")
        with pytest.raises(NotFound):
            moved(f"{store}/cut/big", tmp_path / "x")
        moved(tree, f"{store}/cut")
        moved(f"{store}/cut", tmp_path / "back")
        assert files(tmp_path / "back") == {"big": content}

    def test_many_small_files_are_all_there(self, store: str, tmp_path: Path) -> None:
        many = {f"{number % 7}/{number}": str(number).encode() for number in range(self.small_files)}
        tree = made(tmp_path / "tree", many)
        assert moved(tree, f"{store}/many").files == len(many)
        assert moved(tree, f"{store}/many").kept == len(many)
        moved(f"{store}/many", tmp_path / "back")
        assert files(tmp_path / "back") == many


def made(tree: Path, content: Mapping[str, bytes]) -> Path:
    """A folder with these files, all of them old."""
    for name, data in content.items():
        file = tree / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        os.utime(file, (LONG_AGO, LONG_AGO))
    return tree


def moved(source: object, target: object) -> Done:
    """Stage in this process."""
    return stage(str(source), str(target), Progress(io.StringIO()))


def files(folder: Path) -> dict[str, bytes]:
    """The files below a folder by their names."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def breaking(opened: Any, limit: int) -> Any:
    """The method `open`, whose files for reading fail after `limit` bytes."""

    class Broken(io.FileIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() >= limit:
                raise OSError("the disk is gone")
            return super().read(-1 if size is None else size) or b""

    def found(self: LocalFileSystem, path: str, mode: str = "rb", *given: Any, **named: Any) -> Any:
        return Broken(path) if mode == "rb" else opened(self, path, mode, *given, **named)

    return found
