"""Scalars in events, whatever bytes there are; the vectors of CRC32C are those of RFC 3720."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from corral.runtime.event_records import BrokenRecord, crc32c, data_of, header_at, masked
from corral.runtime.event_scalars import Scalar, scalars_of, time_of
from tests.examples import examples
from tests.runtime.event_files.encoder import event, part, record, simple, tensor, varint, whole

AT = 1_764_028_800.25


@pytest.mark.parametrize(
    ("data", "crc"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ],
)
def test_checksums_are_castagnolis(data: bytes, crc: int) -> None:
    assert crc32c(data) == crc


def test_a_checksum_is_masked_as_tensorflow_does() -> None:
    assert masked(0) == 0xA282EAD8
    assert masked(0x12345678) == ((0x12345678 >> 15 | 0x12345678 << 17) % 2**32 + 0xA282EAD8) % 2**32


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (simple("loss", 0.5), 0.5),
        (simple("loss", -0.0), 0.0),
        (tensor("loss", 1, part(5, struct.pack("<f", 2.5))), 2.5),
        (tensor("loss", 1, part(4, struct.pack("<f", 2.5))), 2.5),
        (tensor("loss", 2, part(4, struct.pack("<d", 0.1))), 0.1),
        (tensor("loss", 2, varint(6 << 3 | 1) + struct.pack("<d", 0.1)), 0.1),
        (tensor("loss", 3, part(7, varint(-7))), -7.0),
        (tensor("loss", 9, whole(10, -7)), -7.0),
        (tensor("loss", 9, part(4, struct.pack("<q", -(2**40)))), -(2.0**40)),
        (tensor("loss", 1), 0.0),
        (tensor("loss", 1, part(5, struct.pack("<f", 2.5)), plugin=""), 2.5),
    ],
)
def test_a_number_is_read_in_each_form_that_writers_use(value: bytes, number: float) -> None:
    assert scalars_of(event(AT, value)) == [Scalar("loss", AT, number)]


@pytest.mark.parametrize(
    "value",
    [
        simple("loss", math.nan),
        simple("loss", math.inf),
        simple("", 1.0),
        simple("x" * 101, 1.0),
        simple("red\x1b[31m", 1.0),
        simple("two\nlines", 1.0),
        part(1, b"no number"),
        tensor("picture", 7, part(8, b"PNG"), plugin="images"),
        tensor("spread", 2, part(4, struct.pack("<d", 1.0)), plugin="histograms"),
        tensor("text", 7, part(8, b"words"), plugin="text"),
        tensor("vector", 1, part(4, struct.pack("<ff", 1, 2)), shape=part(2, whole(1, 2))),
        tensor("short", 2, part(4, struct.pack("<f", 1))),
        tensor("half", 19, whole(13, 15360)),
    ],
)
def test_what_is_no_scalar_is_left_out_and_its_neighbours_are_not(value: bytes) -> None:
    assert scalars_of(event(AT, simple("before", 1), value, simple("after", 2))) == [
        Scalar("before", AT, 1.0),
        Scalar("after", AT, 2.0),
    ]


def test_an_event_without_a_time_and_one_that_is_cut_have_no_scalars() -> None:
    data = event(AT, simple("loss", 0.5))
    assert scalars_of(data[9:]) == [] and time_of(data[9:]) is None and time_of(data) == AT
    assert [scalars_of(data[:end]) for end in range(12, len(data))] == [[]] * (len(data) - 12)


@settings(max_examples=examples(300))
@given(some.binary(max_size=200))
def test_no_bytes_are_too_odd(data: bytes) -> None:
    for each in scalars_of(data):
        assert math.isfinite(each.value) and each.tag


@settings(max_examples=examples(300))
@given(some.data())
def test_a_damaged_record_is_noticed(data: some.DataObject) -> None:
    whole_record = bytearray(record(event(AT, simple("loss", 0.5))))
    at = data.draw(some.integers(0, len(whole_record) - 1))
    whole_record[at] ^= data.draw(some.integers(1, 255))
    if at < 12:
        with pytest.raises(BrokenRecord, match="checksum"):
            header_at(bytes(whole_record), 0)
    else:
        assert data_of(bytes(whole_record)) is None
