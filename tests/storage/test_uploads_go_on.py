"""The part of an archive that arrived is kept for its owner, within bounds, until the rest makes it whole."""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.kernel.errors import Conflict, InvalidInput, NotFound, TooLarge, TooManyRequests
from corral.storage.code_archives import BlobStore
from corral.storage.partial_uploads import KEPT_SECONDS, MOST_OF_ONE, PartialUploads
from corral.workers.pool import Workers
from tests.storage.test_code_archives import archive, entry

WHOLE = archive(entry("train.py", random.Random(0).randbytes(50_000)))
DIGEST = hashlib.sha256(WHOLE).hexdigest()


class _BrokenError(Exception):
    """The connection broke."""


async def stream(data: bytes, cut: bool = False) -> AsyncIterator[bytes]:
    for at in range(0, len(data), 7000):
        yield data[at : at + 7000]
    if cut:
        raise _BrokenError


@pytest.fixture(scope="module")
def blobs(tmp_path_factory: pytest.TempPathFactory) -> BlobStore:
    store = BlobStore(tmp_path_factory.mktemp("code"))
    store.open()
    return store


@pytest.fixture
def parts(tmp_path: Path) -> PartialUploads:
    return PartialUploads(tmp_path / "partial")


async def send(
    blobs: BlobStore, data: bytes, *, at: int = 0, to: str = DIGEST, cut: bool = False, user: str = "a"
) -> int:
    whole = "" if cut else to
    with blobs.partial.claim(user, to, at) as part:
        return await blobs.append(stream(data, cut), part, 100_000, Workers(1), whole)


@settings(max_examples=20, deadline=None)
@given(cuts=st.lists(st.integers(0, len(WHOLE)), max_size=12).map(sorted))
async def test_an_upload_that_is_cut_anywhere_becomes_the_same_bytes(blobs: BlobStore, cuts: list[int]) -> None:
    await blobs.remove(DIGEST)
    for begin, end in zip([0, *cuts], cuts, strict=False):
        assert (blobs.partial.size("a", DIGEST) or 0) == begin
        with pytest.raises(_BrokenError):
            await send(blobs, WHOLE[begin:end], at=begin, cut=True)
        assert await blobs.size(DIGEST) is None, "a part is read as an archive"
    begin = cuts[-1] if cuts else 0
    assert await send(blobs, WHOLE[begin:], at=begin) == len(WHOLE)
    assert blobs.get(DIGEST).read_bytes() == WHOLE
    assert blobs.partial.size("a", DIGEST) is None


async def test_what_arrived_outlives_the_server(blobs: BlobStore) -> None:
    with pytest.raises(_BrokenError):
        await send(blobs, WHOLE[:9000], cut=True)
    again = BlobStore(blobs.root)
    again.open()
    assert again.partial.size("a", DIGEST) == 9000
    assert await send(again, WHOLE[9000:], at=9000) == len(WHOLE)


@pytest.mark.parametrize("offset", [1, 8999, 9001, 10**15])
async def test_bytes_are_taken_at_the_end_of_the_part_alone(blobs: BlobStore, offset: int) -> None:
    with pytest.raises(_BrokenError):
        await send(blobs, WHOLE[:9000], cut=True)
    with pytest.raises(Conflict, match="9000 bytes") as refused:
        await send(blobs, WHOLE, at=offset)
    assert refused.value.details["offset"] == 9000
    blobs.partial.remove("a", DIGEST)


async def test_a_part_has_one_writer_and_belongs_to_one_account(blobs: BlobStore) -> None:
    with blobs.partial.claim("a", DIGEST, 0) as part:
        await part.append(stream(WHOLE[:5]), 100)
        for attempt in (blobs.partial.claim, lambda *asked: blobs.partial.remove(*asked[:2])):
            with pytest.raises(Conflict, match="Another request"):
                attempt("a", DIGEST, 5)
        assert blobs.partial.size("b", DIGEST) is None
        with pytest.raises(NotFound):
            blobs.partial.remove("b", DIGEST)
    assert part.path.stat().st_mode & 0o777 == 0o600 and part.path.parent.stat().st_mode & 0o777 == 0o700
    blobs.partial.remove("a", DIGEST)


async def test_other_bytes_than_the_digest_says_are_deleted(blobs: BlobStore) -> None:
    wrong = "0" * 64
    with pytest.raises(InvalidInput, match="another SHA-256"):
        await send(blobs, WHOLE, to=wrong)
    assert blobs.partial.size("a", wrong) is None and await blobs.size(wrong) is None


async def test_a_harmful_archive_is_refused_and_deleted_when_it_is_whole(blobs: BlobStore) -> None:
    harmful = archive(entry("../x", b"x"))
    digest = hashlib.sha256(harmful).hexdigest()
    with pytest.raises(_BrokenError):
        await send(blobs, harmful[:20], to=digest, cut=True)
    with pytest.raises(InvalidInput, match="refused"):
        await send(blobs, harmful[20:], at=20, to=digest)
    assert blobs.partial.size("a", digest) is None and await blobs.size(digest) is None


async def test_an_upload_that_never_ends_stops_at_the_bound(blobs: BlobStore) -> None:
    with pytest.raises(TooLarge):
        await send(blobs, bytes(200_000), to="1" * 64)
    assert (blobs.partial.size("a", "1" * 64) or 0) <= 100_000
    blobs.partial.remove("a", "1" * 64)


async def test_an_account_keeps_few_parts_and_the_oldest_goes_first(parts: PartialUploads) -> None:
    for each in range(MOST_OF_ONE):
        with parts.claim("a", f"{each:064}", 0) as part:
            await part.append(stream(b"x"), 10)
            os.utime(part.path, (each + time.time() - 100,) * 2)
    with parts.claim("a", "f" * 64, 0) as part:
        await part.append(stream(b"xy"), 10)
    assert [parts.size("a", f"{each:064}") for each in range(MOST_OF_ONE)] == [None, 1, 1, 1]
    assert parts.kept("a") == MOST_OF_ONE + 1 and parts.kept("b") == 0


def test_an_account_that_sends_as_many_as_it_may_cannot_begin_another(parts: PartialUploads) -> None:
    claimed = [parts.claim("a", f"{each:064}", 0) for each in range(MOST_OF_ONE)]
    with pytest.raises(TooManyRequests):
        parts.claim("a", "f" * 64, 0)
    with claimed[0]:
        pass
    parts.claim("a", "f" * 64, 0)
    parts.claim("b", "f" * 64, 0)


async def test_a_part_is_deleted_a_day_after_its_last_byte(parts: PartialUploads) -> None:
    for owner, age in (("old", KEPT_SECONDS + 60), ("new", KEPT_SECONDS - 3600)):
        with parts.claim(owner, DIGEST, 0) as part:
            await part.append(stream(b"x"), 10)
            os.utime(part.path, (time.time() - age,) * 2)
    parts.forget_old()
    assert parts.size("old", DIGEST) is None and parts.size("new", DIGEST) == 1
