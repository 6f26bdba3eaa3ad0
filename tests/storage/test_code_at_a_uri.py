"""Code uploaded to one replica is at a URI where every other finds it, complete or not at all."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from corral.kernel.errors import InvalidInput, NotFound, Unavailable
from corral.storage.code_archives import BlobStore
from corral.storage.remote_folder import RemoteFolder, open_folder
from corral.workers.pool import Workers
from tests.storage.test_code_archives import archive, entry, stream

DATA = archive(entry("train.py", b"print(1)"))
DIGEST = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
async def place(tmp_path: Path) -> RemoteFolder:
    (tmp_path / "far").mkdir()
    return await open_folder(f"file://{tmp_path}/far/corral")


def replica(folder: Path, place: RemoteFolder) -> BlobStore:
    blobs = BlobStore(folder, remote=place.below("code"))
    blobs.open()
    return blobs


async def test_what_one_was_sent_the_other_fetches_once(tmp_path: Path, place: RemoteFolder, workers: Workers) -> None:
    one, two = replica(tmp_path / "one", place), replica(tmp_path / "two", place)
    await one.put(stream(DATA), 1 << 20, workers)
    assert (tmp_path / "far" / "corral" / "code" / f"{DIGEST}.tar.gz").read_bytes() == DATA
    assert await two.size(DIGEST) == len(DATA)
    first, second = await asyncio.gather(two.fetch(DIGEST), two.fetch(DIGEST))
    assert first == second and first.read_bytes() == DATA and first.parent == tmp_path / "two"
    (tmp_path / "far" / "corral" / "code" / f"{DIGEST}.tar.gz").unlink()
    assert (await two.fetch(DIGEST)).read_bytes() == DATA, "it is here now"
    assert await one.size(DIGEST) is None, "it is to be uploaded again, so that all have it"


async def test_a_damaged_archive_is_never_used(tmp_path: Path, place: RemoteFolder) -> None:
    await place.write(f"code/{DIGEST}.tar.gz", DATA + b"!")
    two = replica(tmp_path / "two", place)
    with pytest.raises(NotFound, match="damaged"):
        await two.fetch(DIGEST)
    assert not list(two.root.iterdir())
    with pytest.raises(NotFound, match="upload it again"):
        await two.fetch("0" * 64)


async def test_what_is_removed_is_removed_there_too(tmp_path: Path, place: RemoteFolder, workers: Workers) -> None:
    one = replica(tmp_path / "one", place)
    await one.put(stream(DATA), 1 << 20, workers)
    await one.remove(DIGEST)
    await one.remove(DIGEST)
    assert await one.size(DIGEST) is None and not one.path(DIGEST).exists()
    assert await place.files("code") == {}


async def test_an_upload_that_the_place_does_not_take_is_not_acknowledged(
    tmp_path: Path, place: RemoteFolder, workers: Workers
) -> None:
    one = replica(tmp_path / "one", place)
    (tmp_path / "far" / "corral").mkdir(exist_ok=True)
    (tmp_path / "far" / "corral" / "code").write_text("a file in the way")
    with pytest.raises(Unavailable, match="cannot be used") as refused:
        await one.put(stream(DATA), 1 << 20, workers)
    assert refused.value.retry_after and not list(one.root.iterdir())


async def test_what_was_long_not_needed_here_is_fetched_again(
    tmp_path: Path, place: RemoteFolder, workers: Workers
) -> None:
    one, two = replica(tmp_path / "one", place), replica(tmp_path / "two", place)
    await one.put(stream(DATA), 1 << 20, workers)
    other = archive(entry("other.py", b"print(2)"))

    async def more() -> AsyncIterator[bytes]:
        yield other

    stored = await one.put(more(), 1 << 20, workers)
    path = await two.fetch(DIGEST)
    os.utime(path, (0, time.time() - 8 * 86_400))
    await two.fetch(stored.digest)
    assert [each.name for each in two.root.iterdir()] == [f"{stored.digest}.tar.gz"]
    assert (await two.fetch(DIGEST)).read_bytes() == DATA


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("/srv/blobs", "is not a storage URI"),
        ("ftp://x/y", "ftp: cannot be"),
        ("file:///", "no folder or bucket of its own"),
    ],
)
async def test_a_uri_that_cannot_be_one_is_refused_in_a_sentence(uri: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        await open_folder(uri)


async def test_a_place_that_cannot_be_written_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match=r"The blob store file://\S+ cannot be used: "):
        await open_folder(f"file://{tmp_path}/file/corral")
