"""`corral cp` writes only the requested paths, whatever a task sends; a refusal is one sentence."""

from __future__ import annotations

import io
import itertools
import os
import shutil
import stat
import tarfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from corral.cli import cp
from corral.cli.exit_codes import exit_code
from corral.kernel.errors import CorralError, InvalidInput, Unavailable
from corral.runtime.unpack import Limits
from tests.storage.test_code_archives import BROKEN, DEVICE, FIFO, HARD, SYM, entry, extended, header, record

Entry = tuple[tarfile.TarInfo, bytes]
DIR = tarfile.DIRTYPE


class Sent:
    """The output of a command in a task."""

    def __init__(self, pieces: Iterable[bytes], code: int = 0) -> None:
        self.pieces, self.code, self.taken = pieces, code, 0
        self.exit_code: int | None = None

    def __iter__(self) -> Iterator[bytes]:
        for piece in self.pieces:
            self.taken += len(piece)
            yield piece
        self.exit_code = self.code


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder of the user's, beside a file that must not change."""
    (tmp_path / "secret").write_text("mine")
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def tar(*entries: Entry) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for info, content in entries:
            archive.addfile(info, io.BytesIO(content))
    return raw.getvalue()


def keep(sent: Iterable[bytes] | bytes, into: Path, called: str = "out", *, code: int = 0) -> Sent:
    """Copy `out` from a task that sends this."""
    stream = Sent([sent[at : at + 1000] for at in range(0, len(sent), 1000)] if isinstance(sent, bytes) else sent, code)
    cp.keep(stream, "out", into, called)  # type: ignore[arg-type]
    return stream


def everything(folder: Path) -> dict[str, str]:
    """Each path below a folder, with its content."""
    return {
        str(path.relative_to(folder)): os.readlink(path) if path.is_symlink() else path.read_text()
        for path in sorted(folder.rglob("*"))
        if not path.is_dir() or path.is_symlink()
    }


OUT = entry("out", kind=DIR)
HOSTILE = {
    "a name that climbs": [OUT, entry("out/../../secret", b"x")],
    "a name that climbs at once": [entry("../secret", b"x")],
    "an absolute name": [OUT, entry("/secret", b"x")],
    "another name": [OUT, entry("out2", b"x")],
    "a file of the user's": [entry(".bashrc", b"x")],
    "the folder it goes into": [entry(".", kind=DIR), entry("out", b"x")],
    "a file through a link": [OUT, entry("out/l", kind=SYM, link="d"), entry("out/l/secret", b"x")],
    "a file through a link out": [OUT, entry("out/l", kind=SYM, link="../.."), entry("out/l/secret", b"x")],
    "a link out of what was asked for": [OUT, entry("out/l", kind=SYM, link="../.bashrc")],
    "an absolute link": [OUT, entry("out/l", kind=SYM, link="/etc/passwd")],
    "a link in its place": [entry("out", kind=SYM, link="../secret"), entry("out", b"x")],
    "a hard link outside": [OUT, entry("out/h", kind=HARD, link="../secret")],
    "an absolute hard link": [OUT, entry("out/h", kind=HARD, link="/etc/passwd")],
    "a hard link to the user's": [OUT, entry("out/h", kind=HARD, link=".bashrc")],
    "a device": [OUT, entry("out/null", kind=DEVICE)],
    "a pipe": [OUT, entry("out/pipe", kind=FIFO)],
    "nothing at all": [],
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_was_not_asked_for_is_refused_before_anything_is_written(home: Path, what: str) -> None:
    good = [entry("out/first", b"good")] if HOSTILE[what][:1] == [OUT] else []
    with pytest.raises(InvalidInput) as refused:
        keep(tar(*HOSTILE[what][:1], *good, *HOSTILE[what][1:]), home)
    assert refused.value.code == "unsafe-copy" and "\n" not in refused.value.message
    assert everything(home.parent) == {"secret": "mine"} and exit_code(refused.value) == 2


@pytest.mark.parametrize("what", BROKEN)
def test_headers_that_nobody_means_well_with_are_refused(home: Path, what: str) -> None:
    with pytest.raises(InvalidInput, match=r"^What the task sent is not copied: ") as refused:
        cp.keep(Sent([BROKEN[what] + bytes(1024)]), "f", home, "f")  # type: ignore[arg-type]
    assert "asked for" not in refused.value.message
    assert everything(home.parent) == {"secret": "mine"}


def endless(piece: bytes) -> Iterator[bytes]:
    return itertools.repeat(piece)


ENDLESS: dict[str, Callable[[], Iterator[bytes]]] = {
    "files": lambda: endless(header(name=b"out/f") * 100),
    "nothing after its end": lambda: itertools.chain([tar(entry("out", b"x"))], endless(bytes(65536))),
    "extended headers": lambda: endless(header(tarfile.XHDTYPE, size=b"%011o" % 512) + bytes(512)),
    "a long name": lambda: itertools.chain(
        [header(tarfile.GNUTYPE_LONGNAME, size=b"77777777777")], endless(b"a" * 65536)
    ),
    "a file": lambda: itertools.chain([header(name=b"out", size=b"\x80" + b"\xff" * 11)], endless(bytes(65536))),
    "a file of an extended header": lambda: itertools.chain(
        [extended(record(b"path", b"out") + record(b"size", b"9" * 30))], endless(bytes(65536))
    ),
    "what is no archive": lambda: endless(b"haha" * 10_000),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_what_never_ends_is_left_after_a_few_megabytes(home: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cp, "_LIMITS", Limits(entries=1000, total_bytes=1024**3, name_bytes=10_000))
    stream = Sent(ENDLESS[what]())
    with pytest.raises(InvalidInput):
        cp.keep(stream, "out", home, "out")  # type: ignore[arg-type]
    assert stream.taken < 4 * 1024**2 and everything(home.parent) == {"secret": "mine"}


def test_what_there_is_no_room_for_is_refused_by_its_header(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(home)._replace(free=2_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    huge = itertools.chain([header(name=b"out", size=b"%011o" % 1_000_001)], endless(bytes(65536)))
    with pytest.raises(InvalidInput, match=r"more than the 1,000,000 bytes .* make room") as refused:
        keep(huge, home)
    assert refused.value.code == "copy-too-large"
    keep(tar(entry("out", b"x" * 900_000)), home)


def test_an_honest_folder_is_copied_as_it_was_under_another_name_too(home: Path) -> None:
    told = entry("out/bin/run", b"#!/bin/sh", mode=0o6777)
    told[0].mtime = 1_600_000_000
    sent = tar(
        OUT,
        entry("out/bin", kind=DIR),
        told,
        entry("out/key", b"k", mode=0o400),
        entry("out/odd", b"o", mode=0o055),
        entry("out/same", kind=HARD, link="out/bin/run"),
        entry("out/latest", kind=SYM, link="bin/run"),
        entry("out/up", kind=SYM, link="."),
    )
    for called in ("out", "back"):
        keep(sent, home, called)
        there = home / called
        assert everything(there) == {
            "bin/run": "#!/bin/sh", "key": "k", "latest": "bin/run", "odd": "o", "same": "#!/bin/sh", "up": ".",
        }  # fmt: skip
        run = (there / "bin" / "run").stat()
        assert (stat.S_IMODE(run.st_mode) & ~0o055, run.st_mtime) == (0o700, 1_600_000_000)
        assert run.st_ino == (there / "same").stat().st_ino
        assert stat.S_IMODE((there / "key").stat().st_mode) == 0o600
        assert not (there / "odd").stat().st_mode & 0o111
    keep(tar(OUT, entry("out/key", b"new")), home)
    assert (home / "out" / "key").read_text() == "new" and (home / "out" / "bin" / "run").exists()


def test_nothing_is_written_through_links_of_the_users_own_or_onto_a_device(home: Path) -> None:
    (home / "out").symlink_to(home.parent)
    with pytest.raises(InvalidInput, match="below a link"):
        keep(tar(OUT, entry("out/secret", b"x")), home)
    (home / "null").symlink_to("/dev/null")
    with pytest.raises(InvalidInput, match="neither file nor folder"):
        keep(tar(entry("out", b"x")), home, "null")
    (home / "link").symlink_to(home.parent / "secret")
    keep(tar(entry("out", b"x")), home, "link")
    assert (home / "link").read_text() == "x" and (home.parent / "secret").read_text() == "mine"


def test_a_command_that_fails_is_told_from_an_archive_that_is_bad(home: Path) -> None:
    for sent in (b"", b"tar: out: Cannot stat: No such file or directory\n", tar(OUT), tar(OUT)[:512] + b"tar: gone\n"):
        with pytest.raises(InvalidInput) as refused:
            keep(sent, home, code=2)
        assert refused.value.code == "copy-failed"

    def broken() -> Iterator[bytes]:
        yield tar(OUT)[:700]
        raise Unavailable("exec-broken", "The connection into the task broke; try again.")

    with pytest.raises(Unavailable, match="broke; try again"):
        keep(broken(), home)
    (home / "file").write_text("f")
    with pytest.raises(InvalidInput, match=r"file cannot be written: File exists\."):
        keep(tar(entry("out", b"x")), home / "file")
    assert everything(home) == {"file": "f"}


def test_a_name_cannot_speak_to_the_terminal(home: Path) -> None:
    with pytest.raises(InvalidInput) as refused:
        keep(tar(OUT, entry("\x1b]0;owned\x07\n\u202e", b"x")), home)
    assert refused.value.message.isprintable()


def test_the_command_refuses_with_one_sentence(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Client:
        def __enter__(self) -> Client:
            return self

        def __exit__(self, *_: object) -> None: ...

        def exec(self, job: str, role: str, index: int, command: list[str]) -> Any:
            assert (job, role, index, command) == (
                "digits",
                "worker",
                0,
                ["tar", "-C", "deep", "-cf", "-", "--", "out"],
            )
            return self.stream

        class stream(Sent):
            def __enter__(self) -> Any:
                return self

            def __exit__(self, *_: object) -> None: ...

    for entries, error in (([OUT, entry("../secret", b"x")], InvalidInput), ([entry("out", b"good")], None)):
        client = Client()
        client.stream = Client.stream([tar(*entries)])  # type: ignore[assignment]
        monkeypatch.setattr(cp, "connect", lambda client=client: client)
        done = CliRunner().invoke(cp.cp_command, ["digits/worker-0:deep/out", str(home)])
        assert (type(done.exception) if isinstance(done.exception, CorralError) else None) is error, done.output
    assert everything(home.parent) == {"home/out": "good", "secret": "mine"}
