"""Code archives are stored by content hash, and none of them can write outside of its folder."""

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
from corral.storage.code_archives import BlobStore
from corral.workers.pool import Workers


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
def test_a_harmful_archive_is_refused_and_nothing_is_written(tmp_path: Path, what: str) -> None:
    data, limits = archive(*MALICIOUS[what]), Limits(50, 1_000_000)
    with pytest.raises(UnsafeArchive):
        check(io.BytesIO(data), limits)
    (tmp_path / "deep/target").mkdir(parents=True)
    with pytest.raises(UnsafeArchive):
        unpack(io.BytesIO(data), str(tmp_path / "deep/target"), limits)
    assert not (tmp_path / "x").exists() and not (tmp_path / "deep/x").exists()


def header(kind: bytes = tarfile.REGTYPE, *, size: bytes = b"%011o" % 0, name: bytes = b"f") -> bytes:
    """A header block with any bytes as its size."""
    block = bytearray(512)
    block[: len(name)] = name
    block[100:108] = b"0000644\0"
    block[108:116] = block[116:124] = b"0000000\0"
    block[124 : 124 + len(size)] = size
    block[136:148] = b"00000000000\0"
    block[156:157] = kind
    block[257:265] = b"ustar\x0000"
    block[148:156] = b"%06o\0 " % sum(block[:148] + b" " * 8 + block[156:])
    return bytes(block)


def extended(text: bytes, kind: bytes = tarfile.XHDTYPE, *, many: int = 1) -> bytes:
    """Extended headers, and the file that they describe."""
    one = header(kind, size=b"%011o" % len(text)) + text.ljust(-(-len(text) // 512) * 512, b"\0")
    return one * many + header()


def record(keyword: bytes, value: bytes) -> bytes:
    """A record of an extended header, with its length in front."""
    rest = b" " + keyword + b"=" + value + b"\n"
    length = len(rest)
    while len(b"%d" % length) + len(rest) != length:
        length = len(b"%d" % length) + len(rest)
    return b"%d" % length + rest


LONG = b"a" * (1 << 20)
BROKEN = {
    "a negative size": header(size=b"\xff" * 12),
    "a negative size of a long name": header(tarfile.GNUTYPE_LONGNAME, size=b"\xff" * 12),
    "a size of no number": header() + header(size=b"nonsense"),
    "a negative size in an extended header": extended(record(b"size", b"-1024")),
    "a size of words in an extended header": extended(record(b"size", b"many")),
    "an endless size in an extended header": extended(record(b"size", b"inf")),
    "a long name of a MiB": extended(LONG, tarfile.GNUTYPE_LONGNAME),
    "a long link of a MiB": extended(LONG, tarfile.GNUTYPE_LONGLINK),
    "an extended header of a MiB": extended(record(b"comment", LONG)),
    "an extended header for each of thousands": extended(record(b"comment", b"x"), many=5000),
    "long names for each of thousands": extended(b"name", tarfile.GNUTYPE_LONGNAME, many=5000),
    "global headers without end": extended(record(b"comment", LONG[:60_000]), tarfile.XGLTYPE, many=3),
    "a path of thirty thousand folders": extended(b"a/" * 30_000, tarfile.GNUTYPE_LONGNAME),
    "a path of a thousand folders": extended(b"a/" * 1000, tarfile.GNUTYPE_LONGNAME),
    "a sparse file": header(tarfile.GNUTYPE_SPARSE, size=b"%011o" % 0),
    "a sparse file of an extended header": extended(record(b"GNU.sparse.map", b"0,x")),
    "a header that is cut off": header() + header()[:100],
    "an extended header about nothing": header(tarfile.XHDTYPE, size=b"%011o" % 0),
}


@pytest.mark.parametrize("what", BROKEN)
def test_headers_that_nobody_means_well_with_are_refused(tmp_path: Path, what: str) -> None:
    data = gzip.compress(BROKEN[what] + bytes(1024))
    with pytest.raises(UnsafeArchive):
        check(io.BytesIO(data))
    with pytest.raises(UnsafeArchive):
        unpack(io.BytesIO(data), str(tmp_path / "target"))


def test_an_archive_may_not_unpack_to_many_times_its_size() -> None:
    bomb = archive(entry("zeros", bytes(4 << 20)))
    check(io.BytesIO(bomb))
    with pytest.raises(UnsafeArchive, match="unpacks to more"):
        check(io.BytesIO(bomb), Limits(small_bytes=1 << 20))


async def test_what_is_no_archive_is_refused_and_nothing_is_kept(blobs: BlobStore, workers: Workers) -> None:
    cut = archive(entry("a", b"x" * 5000))[:-40]
    bombs = (gzip.compress(BROKEN[what]) for what in ("a negative size", "a size of words in an extended header"))
    harmful = archive(*MALICIOUS["a name that climbs"])
    for data in (b"", b"hello", gzip.compress(b"hello"), cut, harmful, *bombs):
        with pytest.raises(InvalidInput, match="was refused"):
            await blobs.put(stream(data), 10_000_000, workers)
    assert not list(blobs.root.iterdir())


async def test_an_archive_is_known_by_its_content(blobs: BlobStore, workers: Workers) -> None:
    data = archive(entry("train.py", b"print(1)"))
    stored = await blobs.put(stream(data), 10_000_000, workers)
    assert stored == await blobs.put(stream(data), 10_000_000, workers) == (hashlib.sha256(data).hexdigest(), len(data))
    assert blobs.get(stored.digest).read_bytes() == data and await blobs.size(stored.digest) == len(data)
    assert len(list(blobs.root.iterdir())) == 1
    await blobs.remove(stored.digest)
    assert await blobs.size(stored.digest) is None
    with pytest.raises(NotFound, match="upload it again"):
        blobs.get(stored.digest)


async def test_an_upload_over_the_bound_is_cut_off(blobs: BlobStore, workers: Workers) -> None:
    with pytest.raises(TooLarge, match="larger than 100 bytes"):
        await blobs.put(stream(archive(entry("a", os.urandom(5000)))), 100, workers)
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
