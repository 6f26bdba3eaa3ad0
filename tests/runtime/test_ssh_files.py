"""SFTP in a task: what clients of OpenSSH ask beside copies, and what a client that sends nonsense is told."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.runtime.ssh_files import BadMessage, Files, text

OK, EOF, NO_SUCH_FILE, DENIED, FAILURE, BAD_MESSAGE, UNSUPPORTED = 0, 1, 2, 3, 4, 5, 8
OPEN, CLOSE, READ, WRITE, LSTAT, SETSTAT, OPENDIR, READDIR, REMOVE, REALPATH, RENAME, READLINK, SYMLINK, EXTENDED = (
    3, 4, 5, 6, 7, 9, 11, 12, 13, 16, 18, 19, 20, 200,
)  # fmt: skip
NONE = struct.pack(">I", 0)


class Asked:
    """A client: each call is one packet and its answer."""

    def __init__(self) -> None:
        self._files = Files()

    def __call__(self, kind: int, *fields: bytes) -> tuple[int, bytes]:
        """The kind and the content of the answer, which has the request's number."""
        packet = bytes((kind,)) + struct.pack(">I", 77) + b"".join(fields)
        answer = self._files.answer(packet)
        size, told, number = struct.unpack(">IBI", answer[:9])
        assert size == len(answer) - 4 and number == 77
        return told, answer[9:]

    def status(self, kind: int, *fields: bytes) -> int:
        """The code of an answer that is a status."""
        told, content = self(kind, *fields)
        assert told == 101
        return int(struct.unpack(">I", content[:4])[0])

    def handle(self, kind: int, *fields: bytes) -> bytes:
        """The handle of an answer, as a field."""
        told, content = self(kind, *fields)
        assert told == 102
        return content


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """A client in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return Asked()


def flags(number: int) -> bytes:
    return struct.pack(">I", number)


def at(offset: int) -> bytes:
    return struct.pack(">Q", offset)


def test_a_file_is_written_read_and_renamed(asked: Asked, tmp_path: Path) -> None:
    handle = asked.handle(OPEN, text(b"new"), flags(2 | 8), NONE)
    assert asked.status(WRITE, handle, at(3), text(b"def")) == OK
    assert asked.status(WRITE, handle, at(0), text(b"abc")) == OK
    assert asked.status(CLOSE, handle) == OK
    assert (tmp_path / "new").read_bytes() == b"abcdef"
    handle = asked.handle(OPEN, text(b"new"), flags(1), NONE)
    assert asked(READ, handle, at(2), flags(2)) == (103, text(b"cd"))
    assert asked.status(READ, handle, at(6), flags(2)) == EOF
    (tmp_path / "other").write_text("")
    assert asked.status(RENAME, text(b"new"), text(b"other")) == FAILURE
    assert asked.status(EXTENDED, text(b"posix-rename@openssh.com"), text(b"new"), text(b"other")) == OK
    assert (tmp_path / "other").read_bytes() == b"abcdef"
    assert asked.status(OPEN, text(b"other"), flags(2 | 8 | 32), NONE) == FAILURE


def test_paths_and_links_are_told(asked: Asked, tmp_path: Path) -> None:
    assert text(os.fsencode(tmp_path)) in asked(REALPATH, text(b""))[1]
    assert asked.status(SYMLINK, text(b"target"), text(b"link")) == OK
    assert os.readlink(tmp_path / "link") == "target"
    assert text(b"target") in asked(READLINK, text(b"link"))[1]
    assert asked(LSTAT, text(b"link"))[0] == 105
    assert asked.status(REMOVE, text(b"gone")) == NO_SUCH_FILE
    assert text(os.fsencode(Path.home())) in asked(EXTENDED, text(b"expand-path@openssh.com"), text(b"~"))[1]


def test_a_folder_of_thousands_is_listed_in_pieces(asked: Asked, tmp_path: Path) -> None:
    for number in range(1234):
        (tmp_path / f"file-{number}").touch()
    (tmp_path / os.fsdecode(b"no-utf-8-\xff")).touch()
    handle, names = asked.handle(OPENDIR, text(b".")), 0
    while True:
        told, content = asked(READDIR, handle)
        if told == 101:
            break
        assert len(content) < 64 * 1024
        names += int(struct.unpack(">I", content[:4])[0])
    assert names == 1234 + 3 and asked.status(READDIR, handle) == EOF


def test_modes_sizes_and_times_are_set(asked: Asked, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("123456")
    given = struct.pack(">IQIII", 1 | 4 | 8, 3, 0o640, 1000, 2000)
    assert asked.status(SETSTAT, text(b"a"), given) == OK
    found = (tmp_path / "a").stat()
    assert (found.st_size, found.st_mode & 0o777, found.st_mtime) == (3, 0o640, 2000)


@pytest.mark.parametrize(
    ("kind", "fields", "code"),
    [
        (OPEN, (struct.pack(">I", 2**32 - 1), b"short"), BAD_MESSAGE),
        (OPEN, (text(b"a\0b"), flags(1), NONE), BAD_MESSAGE),
        (READ, (text(b"99"), at(0), flags(1)), BAD_MESSAGE),
        (CLOSE, (text(b"99"),), BAD_MESSAGE),
        (READDIR, (text(b"99"),), BAD_MESSAGE),
        (OPEN, (text(b"x" * 5000), flags(1), NONE), FAILURE),
        (EXTENDED, (text(b"unknown@example"),), UNSUPPORTED),
        (199, (), UNSUPPORTED),
    ],
)
def test_nonsense_is_answered_with_a_status(asked: Asked, kind: int, fields: tuple[bytes, ...], code: int) -> None:
    assert asked.status(kind, *fields) == code


def test_offsets_beyond_files_are_refused(asked: Asked, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    handle = asked.handle(OPEN, text(b"a"), flags(1 | 2), NONE)
    assert asked.status(WRITE, handle, at(2**64 - 1), text(b"x")) == FAILURE
    assert asked.status(READ, handle, at(2**64 - 1), flags(10)) == FAILURE


def test_a_client_opens_no_more_than_a_thousand_files(asked: Asked, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    made = [asked.handle(OPEN, text(b"a"), flags(1), NONE) for _ in range(1000)]
    assert asked.status(OPEN, text(b"a"), flags(1), NONE) == FAILURE
    for handle in made:
        assert asked.status(CLOSE, handle) == OK
    assert len(set(made)) == 1000


@given(st.binary(min_size=1, max_size=40).filter(lambda data: data[0] in (1, 5, 8, 12, 200) or data[0] > 20))
def test_noise_is_answered_or_refused(noise: bytes) -> None:
    """Kinds that would change files by a name are left out."""
    try:
        answer = Files().answer(noise)
    except BadMessage:
        assert len(noise) < 5
        return
    assert struct.unpack(">I", answer[:4])[0] == len(answer) - 4
