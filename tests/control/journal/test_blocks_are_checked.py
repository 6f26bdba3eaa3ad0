"""A journal's blocks come back as they were written; a file that was cut off or altered is read to the last whole one."""

from __future__ import annotations

import io
import zlib
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.control.journal.blocks import MAGIC, MOST_RAW, VERSION, BlockReader, BlockWriter
from corral.kernel.errors import InvalidInput


def written(*blocks: list[bytes], closed: bool = True) -> bytes:
    file = io.BytesIO()
    writer = BlockWriter(file)
    for records in blocks:
        for record in records:
            writer.add(record)
        writer.flush()
    if closed:
        writer.close()
    return file.getvalue()


def read(data: bytes) -> tuple[list[bytes], str]:
    reader = BlockReader(io.BytesIO(data))
    return list(reader), reader.problem


WHOLE = written([b"one", b"two"], [b""], [b"three" * 100])
RECORDS = [b"one", b"two", b"", b"three" * 100]


@given(st.lists(st.lists(st.binary(max_size=200), max_size=5), max_size=5))
def test_records_come_back_in_order(blocks: list[list[bytes]]) -> None:
    assert read(written(*blocks)) == ([each for records in blocks for each in records], "")


@pytest.mark.parametrize("size", range(12, len(WHOLE)))
def test_a_file_that_was_cut_off_is_read_to_its_last_whole_block(size: int) -> None:
    found, problem = read(WHOLE[:size])
    assert found == RECORDS[: len(found)] and len(found) in (0, 2, 3, 4)
    assert problem.startswith("Block ") and problem.endswith("up to the last whole block before.")


@pytest.mark.parametrize("at", range(12, len(WHOLE)))
def test_an_altered_byte_is_found(at: int) -> None:
    found, problem = read(WHOLE[:at] + bytes([WHOLE[at] ^ 1]) + WHOLE[at + 1 :])
    assert found == RECORDS[: len(found)] and problem.count(".") == 1


def test_a_block_that_was_left_out_is_found() -> None:
    first, both = written([b"one"], closed=False), written([b"one"], [b"two"], [b"three"])
    second = written([b"one"], [b"two"], closed=False)
    assert read(first + both[len(second) :]) == (
        [b"one"],
        "Block 2 of the journal was altered: its checksum does not fit; it was read up to the last whole block before.",
    )


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not a journal of Corral"),
        (b"PK\x03\x04 and more of it", "not a journal of Corral"),
        (pack(">8sHxx", MAGIC, VERSION + 1), f"version {VERSION + 1} of the format, and this Corral reads {VERSION}"),
    ],
)
def test_other_files_and_newer_versions_are_refused_in_a_sentence(data: bytes, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        BlockReader(io.BytesIO(data))


def test_a_block_never_decompresses_to_more_than_it_says() -> None:
    """A false size has a fitting checksum: whoever wrote the file wrote both."""
    honest = written([b"\0" * 1_000_000])
    writer = BlockWriter(file := io.BytesIO())
    stored = zlib.compress(b"\0" * 1_000_000)
    writer._write(stored, 1000)
    found, problem = read(file.getvalue())
    assert not found and "cannot be decompressed" in problem
    assert read(honest)[1] == ""


def test_sizes_are_bounded_before_anything_is_read() -> None:
    header = pack(">8sHxx", MAGIC, VERSION)
    for sizes in ((2**32 - 1, 10), (11, 10), (10, MOST_RAW + 1)):
        assert "larger than any block" in read(header + pack(">II16s", *sizes, b""))[1]


def test_a_record_larger_than_a_block_is_refused() -> None:
    with pytest.raises(InvalidInput, match="too large for a journal"):
        BlockWriter(io.BytesIO()).add(bytes(MOST_RAW))
