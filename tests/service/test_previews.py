"""A preview of a file is bounded in every direction, and only what is a picture by its bytes is called one."""

from __future__ import annotations

import struct
import zlib

import pytest

from corral.kernel.errors import InvalidInput
from corral.service.storages.pictures import MOST_BYTES, checked_picture, picture_type
from corral.service.storages.preview import LONGEST_CELL, LONGEST_LINE, MOST_COLUMNS, MOST_LINES, MOST_ROWS, preview_of


def png(width: int, height: int) -> bytes:
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))


def gif(width: int, height: int, *, frame: int = 1) -> bytes:
    extension = b"\x21\xf9\x04\0\0\0\0\0"
    return (
        b"GIF89a"
        + struct.pack("<HHBBB", width, height, 0, 0, 0)
        + extension
        + b","
        + struct.pack("<4H", 0, 0, frame, frame)
    )


def jpeg(width: int, height: int) -> bytes:
    return b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x0b\x08" + struct.pack(">HH", height, width) + b"\x01\x01\x11\x00"


def webp(width: int, height: int) -> bytes:
    extent = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF\x20\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + extent


def test_a_table_has_a_bounded_number_of_rows_columns_and_characters() -> None:
    head = ",".join(f"c{at}" for at in range(MOST_COLUMNS + 9))
    rows = [",".join(["x" * (LONGEST_CELL + 1)] * (MOST_COLUMNS + 9))] * 3 + ["1,2"] * MOST_ROWS
    data = "\n".join([head, *rows]).encode()
    found = preview_of("big.csv", data, len(data))
    assert (found.kind, len(found.rows), len(found.columns), found.cut) == ("table", MOST_ROWS, MOST_COLUMNS, True)
    assert {len(cell) for cell in found.rows[0]} == {LONGEST_CELL + 1} and found.rows[0][0].endswith("…")
    assert found.rows[3] == ("1", "2")


@pytest.mark.parametrize(
    ("name", "text", "columns", "row"),
    [
        ("a.csv", 'step,note\n1,"a, b"\n', ("step", "note"), ("1", "a, b")),
        ("a.TSV", "step\tloss\n1\t0.5\n", ("step", "loss"), ("1", "0.5")),
        ("a.jsonl", '{"step": 1}\n\n{"step": 2, "more": [1]}\n', ("step", "more"), ("1", "")),
    ],
)
def test_values_become_rows(name: str, text: str, columns: tuple[str, ...], row: tuple[str, ...]) -> None:
    found = preview_of(name, text.encode(), len(text))
    assert (found.kind, found.columns, found.rows[0], found.cut) == ("table", columns, row, False)


def test_the_last_row_is_left_out_where_the_file_goes_on() -> None:
    found = preview_of("a.csv", b"a,b\n1,2\n3,", 10_000)
    assert found.rows == (("1", "2"),) and found.cut


@pytest.mark.parametrize(
    ("name", "data", "size"),
    [
        ("endless.csv", b"a" * 200_000, 1 << 31),
        ("open.csv", b'a,b\n1,"' + b"x\n" * 90_000, 1 << 31),
        ("deep.jsonl", b"[" * 100_000 + b"\n", 100_001),
        ("words.jsonl", b"not json\n", 9),
        ("scalar.jsonl", b"1\n2\n", 4),
        ("page.html", b"<script>alert(1)</script>", 25),
        ("drawing.svg", b"<svg onload='alert(1)'/>", 24),
    ],
)
def test_what_is_no_table_is_bounded_text(name: str, data: bytes, size: int) -> None:
    found = preview_of(name, data, size)
    lines = found.text.split("\n")
    assert found.kind == "text" and len(lines) <= MOST_LINES and max(map(len, lines)) <= LONGEST_LINE + 1


@pytest.mark.parametrize("data", [b"\x7fELF\0\0", bytes(range(128, 256)) * 9])
def test_bytes_that_are_no_text_are_not_shown(data: bytes) -> None:
    assert preview_of("model.txt", data, len(data)).kind == "other"


def test_a_picture_is_known_by_its_bytes_and_not_by_its_name() -> None:
    assert preview_of("loss.txt", png(4, 4), 33).kind == "picture"
    assert preview_of("loss.png", b"<script>", 8).kind == "text"
    assert picture_type(b"<svg xmlns='http://www.w3.org/2000/svg'/>") == ""


@pytest.mark.parametrize(
    ("made", "kind"), [(png, "image/png"), (gif, "image/gif"), (jpeg, "image/jpeg"), (webp, "image/webp")]
)
def test_a_picture_of_too_many_pixels_or_bytes_is_refused(made: object, kind: str) -> None:
    assert callable(made)
    assert checked_picture(made(600, 400), 1000) == kind
    with pytest.raises(InvalidInput, match="million pixels"):
        checked_picture(made(60_000, 60_000), 1000)
    with pytest.raises(InvalidInput, match="16 MiB"):
        checked_picture(made(600, 400), MOST_BYTES + 1)


@pytest.mark.parametrize("data", [png(9, 9)[:14], gif(9, 9)[:9], jpeg(9, 9)[:6], webp(9, 9)[:18], b"\xff\xd8\xff\xda"])
def test_a_picture_that_does_not_say_how_large_it_is_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        checked_picture(data, len(data))


def test_a_first_frame_that_is_larger_than_its_screen_counts() -> None:
    with pytest.raises(InvalidInput, match="million pixels"):
        checked_picture(gif(1, 1, frame=60_000), 1000)
