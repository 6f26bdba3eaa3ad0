"""Code archives are stored by content, and none of them can write outside of its folder."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from corral.kernel.errors import InvalidInput, NotFound, TooLarge
from corral.runtime.unpack import Limits, UnsafeArchive, check, unpack
from corral.storage.blobs import BlobStore


def entry(name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode, info.size = kind, link, mode, len(content)
    return info, content


def archive(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        for info, content in entries:
            tar.addfile(info, io.BytesIO(content))
    return raw.getvalue()


async def stream(data: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(data), 1000):
        yield data[at : at + 1000]


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    store = BlobStore(tmp_path / "code", Limits(entries=50, total_bytes=1_000_000))
    store.open()
    return store


SYM, HARD, FIFO, DEVICE = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE
MALICIOUS = {
    "an absolute name": [entry("/etc/passwd", b"x")],
    "a name that climbs": [entry("../x", b"x")],
    "a name that climbs later": [entry("a/../../x", b"x")],
    "an absolute link": [entry("l", kind=SYM, link="/etc")],
    "a link outside": [entry("l", kind=SYM, link="../..")],
    "a link that climbs through a link": [entry("d", kind=SYM, link="."), entry("l", kind=SYM, link="d/../..")],
    "a file below a link": [entry("l", kind=SYM, link="d"), entry("l/x", b"x")],
    "a file below a link to here": [entry("l", kind=SYM, link="."), entry("l/x", b"x")],
    "a hard link outside": [entry("h", kind=HARD, link="../../etc/passwd")],
    "a hard link to an absolute name": [entry("h", kind=HARD, link="/etc/passwd")],
    "a hard link to a link": [entry("l", kind=SYM, link="x"), entry("h", kind=HARD, link="l")],
    "a pipe": [entry("p", kind=FIFO)],
    "a device": [entry("d", kind=DEVICE)],
    "the folder itself as a link": [entry(".", kind=SYM, link="x")],
    "too many entries": [entry(f"f{i}") for i in range(51)],
    "too many bytes": [entry("a", b"\0" * 600_000), entry("b", b"\0" * 600_000)],
}


@pytest.mark.parametrize("what", MALICIOUS)
async def test_a_harmful_archive_is_refused_and_nothing_is_kept(blobs: BlobStore, tmp_path: Path, what: str) -> None:
    data = archive(*MALICIOUS[what])
    with pytest.raises(InvalidInput, match="was refused"):
        await blobs.put(stream(data), 10_000_000)
    assert not list(blobs.root.iterdir())
    (tmp_path / "deep/target").mkdir(parents=True)
    with pytest.raises(UnsafeArchive):
        unpack(io.BytesIO(data), str(tmp_path / "deep/target"), Limits(50, 1_000_000))
    assert not (tmp_path / "x").exists() and not (tmp_path / "deep/x").exists()


@pytest.mark.parametrize(
    "data",
    [b"", b"hello", gzip.compress(b"hello"), archive(entry("a", b"x" * 5000))[:-40]],
    ids=["nothing", "a word", "a packed word", "an archive that is cut off"],
)
async def test_what_is_no_archive_is_refused(blobs: BlobStore, data: bytes) -> None:
    with pytest.raises(InvalidInput, match="was refused"):
        await blobs.put(stream(data), 10_000_000)


async def test_an_archive_is_known_by_its_content(blobs: BlobStore) -> None:
    data = archive(entry("train.py", b"print(1)"))
    stored = await blobs.put(stream(data), 10_000_000)
    assert stored == await blobs.put(stream(data), 10_000_000) == (hashlib.sha256(data).hexdigest(), len(data))
    assert blobs.get(stored.digest).read_bytes() == data and await blobs.size(stored.digest) == len(data)
    assert len(list(blobs.root.iterdir())) == 1
    await blobs.remove(stored.digest)
    assert await blobs.size(stored.digest) is None
    with pytest.raises(NotFound, match="upload it again"):
        blobs.get(stored.digest)


async def test_an_upload_over_the_bound_is_cut_off(blobs: BlobStore) -> None:
    with pytest.raises(TooLarge, match="larger than 100 bytes"):
        await blobs.put(stream(archive(entry("a", os.urandom(5000)))), 100)
    assert not list(blobs.root.iterdir())


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "a" * 63, "A" * 64, "a" * 64 + "\n"])
def test_only_a_digest_names_a_blob(blobs: BlobStore, digest: str) -> None:
    with pytest.raises(InvalidInput, match="64 hexadecimal"):
        blobs.path(digest)


def test_an_honest_archive_is_unpacked_as_it_was(tmp_path: Path) -> None:
    source = tmp_path / "a.tar.gz"
    source.write_bytes(
        archive(
            entry("."[:1], kind=tarfile.DIRTYPE),
            entry("./bin", kind=tarfile.DIRTYPE),
            entry("./bin/run", b"#!/bin/sh\n", mode=0o4755),
            entry("lib/é.txt", b"text"),
            entry("bin/link", kind=SYM, link="../lib/é.txt"),
            entry("same", kind=HARD, link="lib/é.txt"),
        )
    )
    check(source.open("rb"))
    target = tmp_path / "work"
    assert unpack(source.open("rb"), str(target)) == 6
    assert (target / "bin/link").read_text() == (target / "same").read_text() == "text"
    assert os.stat(target / "bin/run").st_mode & 0o7777 == 0o755
    assert unpack(source.open("rb"), str(target)) == 6


def test_a_link_in_the_target_is_not_written_through(tmp_path: Path) -> None:
    source = tmp_path / "a.tar.gz"
    source.write_bytes(archive(entry("out/x", b"x")))
    (tmp_path / "work").mkdir()
    (tmp_path / "elsewhere").mkdir()
    os.symlink(tmp_path / "elsewhere", tmp_path / "work/out")
    with pytest.raises(UnsafeArchive, match="below a link"):
        unpack(source.open("rb"), str(tmp_path / "work"))
    assert not list((tmp_path / "elsewhere").iterdir())
