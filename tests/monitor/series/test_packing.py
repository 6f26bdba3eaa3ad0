"""What is read from a packed chunk is what was written, within the stated rounding; broken bytes are refused."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.monitor.series.packing import EXACT, BrokenChunk, Chunk, pack, round_to, unpack

VALUES = st.floats(-1e300, 1e300) | st.integers(-(2**53), 2**53).map(float) | st.sampled_from([0.0, -0.0, 5e-324, 1.0])
STEPS = st.sets(st.integers(0, 239), min_size=1, max_size=240).map(sorted)


@st.composite
def chunks(draw: st.DrawFn) -> Chunk:
    steps = draw(STEPS)
    some = st.sampled_from(draw(st.lists(VALUES, min_size=1, max_size=8)))
    count = draw(st.integers(1, 3))
    return Chunk(steps, tuple(draw(st.lists(some, min_size=len(steps), max_size=len(steps))) for _ in range(count)))


@given(chunks(), st.sampled_from([11, 16, EXACT]))
def test_what_is_read_is_what_was_written(chunk: Chunk, bits: int) -> None:
    found = unpack(pack(chunk, bits), 240)
    assert list(found.steps) == list(chunk.steps) and len(found.columns) == len(chunk.columns)
    for written, read in zip(chunk.columns, found.columns, strict=True):
        for before, after in zip(written, read, strict=True):
            assert math.isclose(before, after, rel_tol=2.0**-bits, abs_tol=5e-324)
            assert bits < EXACT or before == after


@given(chunks())
def test_no_chunk_is_larger_than_its_numbers(chunk: Chunk) -> None:
    assert len(pack(chunk, EXACT)) <= 16 + 2 * len(chunk.steps) + len(chunk.columns) * (9 + 8 * len(chunk.steps))


@given(st.floats(-1e300, 1e300), st.integers(2, 52))
def test_rounding_keeps_the_stated_bits(value: float, bits: int) -> None:
    assert abs(round_to(value, bits) - value) <= abs(value) * 2.0**-bits + 5e-324


@given(st.binary(max_size=200))
def test_other_bytes_are_refused_or_read_as_a_chunk_within_bounds(data: bytes) -> None:
    try:
        found = unpack(data, 240)
    except BrokenChunk:
        return
    assert all(0 <= step < 240 for step in found.steps)
    assert {len(column) for column in found.columns} == {len(found.steps)}


@given(chunks(), st.data())
def test_a_cut_chunk_is_refused(chunk: Chunk, data: st.DataObject) -> None:
    packed = pack(chunk, 16)
    with pytest.raises(BrokenChunk):
        unpack(packed[: data.draw(st.integers(0, len(packed) - 1))], 240)


def test_usual_series_take_few_bytes() -> None:
    """Of an hour: a constant, device use in percent, and a falling loss."""
    chance = random.Random(1)
    use = [float(chance.randint(80, 100)) for _ in range(240)]
    loss = [10 * 0.997**step * chance.uniform(0.99, 1.01) for step in range(240)]
    sizes = [len(pack(Chunk(range(240), (values,)), 16)) for values in ([8.0] * 240, use, loss)]
    assert sizes[0] <= 24 and sizes[1] <= 240 and sizes[2] <= 480
