"""PyTorch's question for a trace is answered once, in a folder of the task's own; anything else is not."""

from __future__ import annotations

import os
import socket
import stat
import struct
import time
from importlib.metadata import distributions
from pathlib import Path

import pytest

from corral.runtime import torch_daemon, torch_recorder
from corral.runtime.torch_daemon import ASKED, answer, answer_beside, armed, wanted

REQUEST = struct.pack("<Q32s", 20, b"req") + struct.pack("<iiqi", 2, 1, 0, 4711)
CONTEXT = struct.pack("<Q32s", 16, b"ctxt") + struct.pack("<iiq", 0, 4711, 0)


def text_of(reply: bytes) -> bytes:
    """The body of a reply, whose size is told in its head."""
    size, _ = struct.unpack_from("<Q32s", reply)
    assert len(reply) == 40 + size
    return reply[40:]


def ask(folder: Path, seconds: float) -> bytes:
    """Ask for a trace that starts in so many seconds."""
    text = f"PROFILE_START_TIME={round((time.time() + seconds) * 1000)}\n".encode()
    (folder / torch_daemon.ASKED).write_bytes(text)
    return text


def test_a_process_is_given_the_wanted_configuration_once(tmp_path: Path) -> None:
    assert text_of(answer(REQUEST, str(tmp_path))) == b""
    given = ask(tmp_path, 3600)
    assert text_of(answer(REQUEST, str(tmp_path))) == given
    assert (tmp_path / "given-4711").exists()
    assert text_of(answer(REQUEST, str(tmp_path))) == b""


def test_a_configuration_whose_time_has_come_is_given_to_nobody(tmp_path: Path) -> None:
    ask(tmp_path, 0)
    assert text_of(answer(REQUEST, str(tmp_path))) == b""


@pytest.mark.parametrize("asked", [b"", b"PROFILE_START_TIME=soon", b"\xff" * 10_000])
def test_a_broken_configuration_is_given_to_nobody(tmp_path: Path, asked: bytes) -> None:
    (tmp_path / torch_daemon.ASKED).write_bytes(asked)
    assert text_of(answer(REQUEST, str(tmp_path))) == b""


@pytest.mark.parametrize("message", [b"", b"x", REQUEST[:39], REQUEST[:45], b"\xff" * 40_000])
def test_what_is_no_question_gets_no_answer(tmp_path: Path, message: bytes) -> None:
    assert answer(message, str(tmp_path)) == b""


def test_a_task_has_a_folder_of_its_own_that_goes_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with armed({"A": "b"}) as env:
        folder = env[torch_daemon.VARIABLE]
        assert folder.startswith("/tmp/corral-torch-"), "PyTorch writes traces nowhere else"
        assert (env["A"], env["KINETO_USE_DAEMON"]) == ("b", "1")
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asking:
            asking.settimeout(60)
            asking.bind(f"{folder}/client")
            for message in (b"nonsense", CONTEXT):
                asking.sendto(message, f"{folder}/dynolog")
            assert text_of(asking.recv(1000)) == struct.pack("<i", 1)
    assert not os.path.exists(folder)


def test_a_sidecar_answers_again_after_its_restart_and_follows_nothing_that_the_task_puts_there(tmp_path: Path) -> None:
    folder = tmp_path / "torch"
    for life in range(2):
        answer_beside(str(folder))
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asking:
            asking.settimeout(60)
            asking.bind(f"{folder}/client{life}")
            asking.sendto(CONTEXT, f"{folder}/dynolog")
            reply, sender = asking.recvfrom(1000)
            assert text_of(reply) == struct.pack("<i", 1)
            assert sender == f"{folder}/dynolog", "PyTorch ends its program otherwise"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o777
    assert wanted(str(folder)) == b"" != ask(folder, 60) == wanted(str(folder))
    (folder / ASKED).rename(tmp_path / "elsewhere")
    (folder / ASKED).symlink_to(tmp_path / "elsewhere")
    assert wanted(str(folder)) == b""
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(OSError, match="link"):
        answer_beside(str(tmp_path / "link"))


def test_a_task_in_a_container_of_its_own_is_told_that_nothing_is_offered(capfd: pytest.CaptureFixture[str]) -> None:
    with armed({"A": "b"}, apart=True) as env:
        assert env == {"A": "b"}
    assert "PyTorch's traces are not offered" in capfd.readouterr().err


def test_flight_recorders_are_on_in_the_task_s_folder_unless_the_job_says_otherwise() -> None:
    with armed({"PYTHONPATH": "/mine", "TORCH_FR_BUFFER_SIZE": "5"}) as env:
        folder = Path(env["CORRAL_FLIGHT_RECORDER"])
        assert env["TORCH_FR_BUFFER_SIZE"] == "5"
        assert env["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"].startswith(f"{folder}/")
        mine, ours = env["PYTHONPATH"].split(os.pathsep)
        assert mine == "/mine"
        (found,) = [point for each in distributions(path=[ours]) for point in each.entry_points]
        assert (found.group, found.value) == ("torch.backends", "corral_recorder:begin")
        assert "def begin" in (Path(ours) / "corral_recorder.py").read_text()
    assert not folder.exists()


@pytest.mark.parametrize(
    ("version", "own", "left"),
    [("2.8.1", "", "2000"), ("2.9.0+cu130", "", None), ("2.15.0", "500", "500"), ("3.0", "", None)],
)
def test_old_names_of_variables_stay_only_where_pytorch_needs_them(
    version: str, own: str, left: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", "2000")
    monkeypatch.setenv("TORCH_NCCL_TRACE_BUFFER_SIZE", own or "2000")
    torch_recorder.forget_old_names(version)
    assert os.environ.get("TORCH_NCCL_TRACE_BUFFER_SIZE") == left
