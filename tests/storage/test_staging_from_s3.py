"""Staging from and to an object store, with credentials from the environment alone."""

from __future__ import annotations

import gc
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from s3fs import S3FileSystem

from corral.storage.staging import _copy
from tests.storage.every_store import StoreSuite


def stage(source: object, target: object, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "corral.storage", "stage", str(source), str(target)]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return subprocess.run(words, env=inherited | env, capture_output=True, text=True, check=False)


class TestABucket(StoreSuite):
    """An object store, whose files are there whole or not at all."""

    @pytest.fixture
    def store(self, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        S3FileSystem.clear_instance_cache()
        yield f"s3://data/{tmp_path.name}"
        S3FileSystem.clear_instance_cache()


def test_a_tree_goes_to_a_bucket_and_comes_back_and_is_moved_once(tmp_path: Path, environment: dict[str, str]) -> None:
    tree = tmp_path / "tree"
    (tree / "deep").mkdir(parents=True)
    (tree / "a.bin").write_bytes(os.urandom(1_000_000))
    (tree / "deep" / "ü.txt").write_text("b")
    for made in (tree / "a.bin", tree / "deep" / "ü.txt"):
        os.utime(
            made, (1_000_000_000, 1_000_000_000)
        )  # S3's times are whole seconds: within one, the newer file is unknown
    went = stage(tree, "s3://data/run/1", environment)
    assert went.returncode == 0, went.stderr
    again = stage(tree, "s3://data/run/1", environment)
    assert "staged 0 files, 1000001 bytes (2 already there)" in again.stderr
    back = stage("s3://data/run/1", tmp_path / "back", environment)
    assert back.returncode == 0, back.stderr
    assert (tmp_path / "back" / "a.bin").read_bytes() == (tree / "a.bin").read_bytes()
    assert (tmp_path / "back" / "deep" / "ü.txt").read_text() == "b"
    assert "2 already there" in stage("s3://data/run/1", tmp_path / "back", environment).stderr


def test_one_object_is_one_file(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "one").write_text("1")
    assert stage(tmp_path / "one", "s3://data/single", environment).returncode == 0
    assert stage("s3://data/single", tmp_path / "there" / "name", environment).returncode == 0
    assert (tmp_path / "there" / "name").read_text() == "1"


def test_what_is_missing_or_closed_is_one_sentence_without_the_secret(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    none = stage("s3://data/never", tmp_path / "x", environment)
    assert (none.returncode, none.stderr) == (1, "corral: There is nothing at s3://data/never.\n")
    closed = stage("s3://data/never", tmp_path / "x", environment | {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"})
    assert closed.returncode == 1
    assert len(closed.stderr.splitlines()) == 1 and "hunter2" not in closed.stderr, closed.stderr


@pytest.mark.parametrize("size", [1_000, 60 * 1024**2])
def test_an_object_that_came_in_part_is_not_there_and_the_one_before_stays(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    class Broken(io.BytesIO):
        def read(self, count: int | None = -1) -> bytes:
            if chunk := super().read(count):
                return chunk
            raise ConnectionError("the source is gone")

    class Source:
        protocol = "file"

        def open(self, path: str, mode: str) -> Broken:
            return Broken(bytes(size))

    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    store = fsspec.filesystem("s3", skip_instance_cache=True)
    store.pipe_file("data/whole", b"before")
    for path in ("data/whole", "data/new"):
        with pytest.raises(ConnectionError):
            _copy(Source(), "x", store, path)
    gc.collect()
    store.invalidate_cache()
    assert store.cat_file("data/whole") == b"before"
    assert not store.exists("data/new")
    assert store.call_s3("list_multipart_uploads", Bucket="data").get("Uploads", []) == []
