"""Packing the same folder gives the same archive, without the excluded files."""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from corral.cli.code_archive import pack
from corral.kernel.errors import InvalidInput, NotFound
from tests.conftest import ROOT

CASES: dict[str, Any] = json.loads((ROOT / "tests" / "ignore_cases.json").read_text(encoding="utf-8"))


def names(folder: Path) -> list[str]:
    archive = pack(folder)
    archive.file.seek(0)
    with tarfile.open(fileobj=archive.file, mode="r:gz") as opened:
        return opened.getnames()


def fill(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(path)


def test_the_archive_depends_on_names_contents_and_modes_alone(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
    fill(one, "b.py", "a/x.py")
    fill(two, "a/x.py", "b.py")
    os.utime(two / "b.py", (1, 1))
    assert pack(one).digest == pack(two).digest
    (two / "b.py").chmod(0o755)
    assert pack(one).digest != pack(two).digest


@pytest.mark.parametrize("file", [".corralignore", ".gitignore"])
def test_an_ignore_file_leaves_things_out_by_gits_rules(tmp_path: Path, file: str) -> None:
    fill(tmp_path, "keep.py", "data/big.bin", "out/a.log", "out/keep.log", "deep/data/kept.bin", "x.pyc")
    (tmp_path / file).write_text("/data/\n*.log\n!keep.log\n*.pyc\n")
    assert names(tmp_path) == [file, "deep", "deep/data", "deep/data/kept.bin", "keep.py", "out", "out/keep.log"]


def test_corralignore_stands_in_for_gitignore(tmp_path: Path) -> None:
    fill(tmp_path, "a.log", "b.txt")
    (tmp_path / ".gitignore").write_text("b.txt\n")
    (tmp_path / ".corralignore").write_text("*.log\n")
    assert names(tmp_path) == [".corralignore", ".gitignore", "b.txt"]


def test_a_nearer_ignore_file_overrules_one_further_up(tmp_path: Path) -> None:
    fill(tmp_path, "a.log", "sub/a.log", "sub/b.txt")
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "sub" / ".gitignore").write_text("!a.log\nb.txt\n")
    assert names(tmp_path) == [".gitignore", "sub", "sub/.gitignore", "sub/a.log"]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_ignore_file_is_read_as_the_portal_reads_it(tmp_path: Path, case: dict[str, Any]) -> None:
    """`web/src/lib/codefolder.test.ts` has the same cases."""
    for path, text in case["files"].items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(text.encode())
    found = names(tmp_path)
    leaves = [each for each in found if not any(other.startswith(f"{each}/") for other in found)]
    assert sorted(leaves) == sorted(case["kept"])


def test_version_control_folders_never_travel(tmp_path: Path) -> None:
    fill(tmp_path, ".git/config", "sub/.git/HEAD", "a.py")
    assert names(tmp_path) == ["a.py", "sub"]


def test_links_inside_travel_and_links_out_are_refused(tmp_path: Path) -> None:
    fill(tmp_path, "a.py")
    (tmp_path / "link.py").symlink_to("a.py")
    assert names(tmp_path) == ["a.py", "link.py"]
    (tmp_path / "out").symlink_to("/etc/passwd")
    with pytest.raises(InvalidInput, match="corralignore"):
        pack(tmp_path)
    (tmp_path / ".corralignore").write_text("out\n")
    assert "out" not in names(tmp_path)


def test_what_is_no_folder_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        pack(tmp_path / "nowhere")


def test_pieces_tell_how_far_they_are(tmp_path: Path) -> None:
    fill(tmp_path, "a.py")
    archive = pack(tmp_path)
    told: list[int] = []
    assert sum(len(piece) for piece in archive.pieces(told.append)) == archive.size == told[-1]
