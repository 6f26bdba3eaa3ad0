"""A pod's log resumes at its saved position after any break: no line twice, and every gap has a marker."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.engines.kubernetes.logs.log_lines import GAP, LogLines, Position
from tests.examples import examples


def stamped(lines: Sequence[tuple[int, bytes]], *, since: int = 0) -> bytes:
    """The kubelet's answer: `lines` with timestamps in quarters of a second, from second `since` on."""
    return b"".join(b"%s %s" % (stamp(quarters), line) for quarters, line in lines if quarters // 4 >= since)


def stamp(quarters: int) -> bytes:
    return f"1970-01-01T00:{quarters // 240:02}:{quarters // 4 % 60:02}.{quarters % 4 * 25:02}Z".encode()


START = Position()


def read(data: bytes, position: Position = START, size: int = -1, pieces: int = 1) -> tuple[bytes, Position]:
    reader = LogLines(position, size)
    step = max(1, len(data) // pieces)
    out = b"".join(reader.feed(data[at : at + step]) for at in range(0, len(data), step))
    return out, reader.position


def test_times_are_taken_off() -> None:
    assert read(stamped([(4, b"one\n"), (5, b"two with  spaces\n"), (5, b"\n")]))[0] == b"one\ntwo with  spaces\n\n"


def test_a_line_without_a_time_is_taken_as_it_is() -> None:
    assert read(b"unable to retrieve container logs\n")[0] == b"unable to retrieve container logs\n"


def test_lines_of_one_time_are_counted() -> None:
    first, position = read(stamped([(4, b"a\n"), (4, b"b\n")]))
    rest, _ = read(stamped([(4, b"a\n"), (4, b"b\n"), (4, b"c\n"), (9, b"d\n")]), position)
    assert (first, rest) == (b"a\nb\n", b"c\nd\n")


def test_a_line_that_was_cut_off_is_completed() -> None:
    whole = stamped([(4, b"a\n"), (5, b"0123456789\n"), (6, b"b\n")])
    first, position = read(whole[: whole.index(b"5678")])
    assert first == b"a\n01234"
    assert read(whole, position)[0] == b"56789\nb\n"


def test_what_was_rotated_away_leaves_a_marker() -> None:
    _, position = read(stamped([(4, b"a\n"), (5, b"b\n")]))
    assert read(stamped([(7, b"c\n"), (8, b"d\n")]), position)[0] == GAP + b"c\nd\n"


def test_no_marker_without_a_gap() -> None:
    _, position = read(stamped([(4, b"a\n"), (5, b"b\n")]))
    assert read(stamped([(4, b"a\n"), (5, b"b\n"), (8, b"d\n")]), position)[0] == b"d\n"


def test_what_was_copied_after_the_position_was_saved_is_not_copied_again() -> None:
    _, saved = read(stamped([(4, b"a\n")]))
    copied, _ = read(stamped([(4, b"a\n"), (5, b"b\n"), (6, b"cc")]))
    rest, position = read(stamped([(4, b"a\n"), (5, b"b\n"), (6, b"cccc\n"), (7, b"d\n")]), saved, len(copied))
    assert copied + rest == b"a\nb\ncccc\nd\n"
    assert position.size == len(copied + rest)


@pytest.mark.parametrize("pieces", [1, 3, 1000])
def test_pieces_of_any_size_are_the_same(pieces: int) -> None:
    data = stamped([(at, b"line %d\n" % at) for at in range(50)])
    assert read(data, pieces=pieces)[0] == b"".join(b"line %d\n" % at for at in range(50))


LINES = st.lists(
    st.tuples(st.integers(0, 3), st.binary(max_size=6).map(lambda b: b.replace(b"\n", b".") + b"\n")), max_size=12
)


@settings(max_examples=examples(300), deadline=None)
@given(steps=LINES, breaks=st.lists(st.integers(1, 200), max_size=5), unsaved=st.booleans())
def test_a_log_broken_off_anywhere_comes_out_whole(
    steps: list[tuple[int, bytes]], breaks: list[int], unsaved: bool
) -> None:
    """Connections break after these byte counts; the next one starts in the second of the saved position."""
    at, lines = 4, []
    for step, line in steps:
        at += step
        lines.append((at, line))
    copy, position = b"", Position()
    for length in [*breaks, 10**6]:
        reader = LogLines(position, len(copy))
        copy += reader.feed(stamped(lines, since=position.since)[:length])
        if not unsaved or length == 10**6:
            position = reader.position
    assert copy == b"".join(line for _, line in lines)
