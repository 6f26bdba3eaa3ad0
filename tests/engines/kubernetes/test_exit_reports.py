"""The marks that carry a command's exit code in its output, with real shells."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from corral.engines.kubernetes.pods.exit_report import ExitReport
from tests.testbeds.docker import static_busybox

NAME = "0123ABCD"
BEGIN, END = b"\x1e0123ABCD+", b"\x1e0123ABCD=%d;"


def shells() -> Iterator[tuple[str, ...]]:
    """The shells of this machine that images have as `sh`."""
    yield ("sh",)
    if bash := shutil.which("bash"):
        yield (bash, "--posix")
    if busybox := static_busybox():
        yield (str(busybox), "sh")


@pytest.fixture(params=list(shells()), ids=lambda shell: os.path.basename(shell[0]))
def shell(request: pytest.FixtureRequest) -> tuple[str, ...]:
    found: tuple[str, ...] = request.param
    return found


def ran(shell: tuple[str, ...], *argv: str, given: bytes = b"") -> tuple[int | None, bytes]:
    """The reported code and the output of a command under a shell."""
    report = ExitReport()
    done = subprocess.run(
        [*shell, *report.words(argv, tty=False)[1:]], input=given, capture_output=True, check=False, timeout=250
    )  # fmt: skip
    said = report.feed(done.stdout) + report.rest()
    assert report.begun and done.stderr == b"" and done.returncode == report.code
    return report.code, said


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["sh", "-c", "echo one; echo two >&2; echo three; exit 7"], 7, b"one\ntwo\nthree\n"),
        (["true"], 0, b""),
        (["echo", r"a\nb", "$HOME", "'", ""], 0, b"a\\nb $HOME ' \n"),
        (["sh", "-c", "kill -KILL $$"], 137, b""),
        (["sh", "-c", "kill -SEGV $$"], 139, b""),
        (["sh", "-c", "kill -INT $PPID; kill -INT $$"], 130, b""),
        (["sh", "-c", "kill -TERM $PPID; kill -USR1 $PPID; exit 3"], 3, b""),
        (["sh", "-c", "(while kill -0 $$ 2>&-; do :; done; echo late) & exit 5"], 5, b"late\n"),
        (["sh", "-c", "trap"], 0, b""),
    ],
)
def test_a_shell_reports_how_a_command_ended(
    shell: tuple[str, ...], argv: list[str], code: int, said: bytes
) -> None:  # fmt: skip
    assert ran(shell, *argv) == (code, said)


def test_a_word_of_the_shell_is_no_command(shell: tuple[str, ...]) -> None:
    code, said = ran(shell, "exit", "0")
    assert code == 127 and b"exit" in said and b"not found" in said
    assert ran(shell, "/etc/passwd/none")[0] in (126, 127)


def test_input_and_output_stay_as_they_are(shell: tuple[str, ...]) -> None:
    sent = bytes(range(256)) * 20_000
    assert ran(shell, "cat", given=sent) == (0, sent)


def test_a_terminal_carries_the_marks_and_the_interrupt(shell: tuple[str, ...]) -> None:
    report = ExitReport()
    command = "test -t 0 && test -t 1 && test -t 2 && echo ready; exec sleep 600"
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(shell[0], [*shell, *report.words(["sh", "-c", command], tty=True)[1:]])
    said, pressed = b"", False
    while piece := _read(terminal):
        said += report.feed(piece)
        if b"ready" in said and not pressed:  # only once: the terminal drops output that waits when the key comes
            pressed = os.write(terminal, b"\x03") == 1
    os.waitpid(pid, 0)
    os.close(terminal)
    assert report.code == 130 and said.replace(b"^C", b"") == b"ready\r\n"


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux: all programs at the other end have ended
        return b""


def test_a_mark_may_come_in_pieces() -> None:
    whole = BEGIN + b"data" + END % 7 + b"more"
    for cut in range(len(whole) + 1):
        report = ExitReport(NAME)
        assert report.feed(whole[:cut]) + report.feed(whole[cut:]) + report.rest() == b"datamore"
        assert report.begun and report.code == 7
    report = ExitReport(NAME)
    assert b"".join(report.feed(whole[at : at + 1]) for at in range(len(whole))) == b"datamore"
    assert report.code == 7


@pytest.mark.parametrize(
    "data",
    [
        b"\x1e",
        b"\x1e\x1e\x1e",
        b"\x1e0123ABCD",
        b"\x1e0123ABCD=",
        b"\x1e0123ABCD=12",
        b"\x1e0123ABCD=1234;",
        b"\x1e0123ABCD=x;",
        b"\x1e0123ABCE=0;",
        b"0123ABCD=0;",
        b"\x1e0123ABCD\x1e0123AB",
    ],
)
def test_what_looks_like_a_mark_is_output(data: bytes) -> None:
    for cut in range(len(data) + 1):
        report = ExitReport(NAME)
        assert report.feed(data[:cut]) + report.feed(data[cut:]) + report.rest() == data
        assert report.code is None and not report.begun


def test_only_the_start_of_a_mark_is_held_back() -> None:
    report = ExitReport(NAME)
    assert report.feed(b"a prompt $ ") == b"a prompt $ "
    assert report.feed(b"0123") == b"0123"
    assert report.feed(b"then \x1e01") == b"then "
    assert report.feed(b"99") == b"\x1e0199"
    assert report.rest() == b""


def test_the_first_code_counts_and_is_an_exit_code() -> None:
    report = ExitReport(NAME)
    report.feed(END % 512 + END % 0)
    assert report.code == 255, "not 512 modulo 256"


def test_no_two_sessions_have_the_same_marks() -> None:
    assert len({ExitReport().name for _ in range(100)}) == 100
