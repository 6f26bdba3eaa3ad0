"""Staging ends when a storage takes calls and never answers, and says so; one that answers slowly is waited for."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem

from corral.runtime.plan import Plan
from corral.runtime.run import RUNTIME_FAILED, Failed, stage_out
from corral.storage import __main__ as program
from corral.storage import staging
from tests.storage.test_staging import files, tree

__all__ = ["tree"]
_SHORT = """\
import sys
import corral.storage.__main__ as program
program.SILENT_SECONDS, program._SAID_SECONDS = 2.0, 0.5
sys.exit(program.main(sys.argv[1:]))
"""
SHORT = [sys.executable, "-c", _SHORT, "stage"]
"""The words of the program, with less patience."""
USUAL = [sys.executable, "-m", "corral.storage", "stage"]
"""The words of the program; on a busy machine its start alone can take as long as the other one waits."""


@pytest.fixture
def mute() -> Iterator[str]:
    """A daemon at HOST:PORT that takes connections and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held = list[socket.socket]()

        def take() -> None:
            while True:
                try:
                    held.append(server.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=take)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        for each in held:
            each.close()


@pytest.mark.parametrize("scheme", ["hdfs", "webhdfs"])
def test_staging_from_a_name_node_that_never_answers_is_given_up(mute: str, scheme: str, tmp_path: Path) -> None:
    words = [*SHORT, f"{scheme}://{mute}/data", str(tmp_path / "data")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == program.SILENT_CODE, done.stderr
    waiting, *_, given_up = done.stderr.splitlines()
    assert waiting.startswith(
        f"corral: staging {scheme}://{mute}/data to {tmp_path}/data: no storage has answered for "
    )
    assert given_up == "corral: staging is given up: no storage answered for 2 s"


def test_a_task_whose_output_no_storage_takes_ends_with_that_cause(mute: str, tmp_path: Path) -> None:
    (tmp_path / "made").write_text("model")
    target = f"hdfs://{mute}/model"
    plan = Plan("a", ["true"], work=str(tmp_path), outputs=[("made", target)], stage_command=SHORT)
    with pytest.raises(Failed) as error:
        stage_out(plan)
    said = f"the output could not be moved from {tmp_path}/made to {target}: the storage gave no answer for too long"
    assert (error.value.code, str(error.value)) == (RUNTIME_FAILED, said)


def test_a_storage_that_answers_now_and_then_is_not_given_up(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each piece of a file, each folder and each file counts as an answer."""
    spans = list[float]()

    class Counted(staging.Progress):
        def answered(self) -> None:
            spans.append(self.silent_seconds)
            super().answered()

    monkeypatch.setattr(staging, "_CHUNK", 1_000_000)
    with open(os.devnull, "w") as nowhere:
        staging.stage(str(tree), str(tmp_path / "there"), Counted(nowhere))
    assert files(tmp_path / "there") == files(tree)
    folders, pieces = 3, 5 + 1 + 1
    assert len(spans) >= folders + pieces + folders


@pytest.mark.parametrize("way", ["from the store", "to the store"])
def test_a_block_of_an_object_store_may_take_longer_than_ten_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Its library moves 50 MiB in one call, of eight files at once; where the store is silent it gives up by itself."""
    clock, spans = [0.0], list[float]()
    progress = staging.Progress(sys.stderr)

    class Slow(io.BytesIO):
        def _takes_long(self) -> None:
            clock[0] += 2 * program.SILENT_SECONDS
            spans.append(progress.silent_seconds)

        def read(self, size: int | None = -1) -> bytes:
            self._takes_long()
            return super().read(size)

        def write(self, data: Any) -> int:
            self._takes_long()
            return super().write(data)

        def close(self) -> None:
            self._takes_long()
            super().close()

    class Store:
        protocol = "s3"

        def open(self, path: str, mode: str) -> Slow:
            return Slow(b"bytes" if mode == "rb" else b"")

    monkeypatch.setattr(staging.time, "monotonic", lambda: clock[0])
    progress.answered()
    local = LocalFileSystem()
    (tmp_path / "a").write_bytes(b"bytes")
    if way == "from the store":
        staging._copy(Store(), "a", local, str(tmp_path / "b"), progress, size=5)
        assert (tmp_path / "b").read_bytes() == b"bytes"
        spans.pop()  # it is closed without a call to the store
    else:
        staging._copy(local, str(tmp_path / "a"), Store(), "b", progress, size=5)
    assert len(spans) >= 2 and set(spans) == {0.0}
    clock[0] += 3.0
    progress.answered()
    clock[0] += 4.0
    assert progress.silent_seconds == 4.0, "afterwards silence counts again"


def test_the_programs_end_does_not_wait_for_what_watches_it(tree: Path, tmp_path: Path) -> None:
    given: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 240, "check": False}
    done = subprocess.run([*USUAL, str(tree), str(tmp_path / "there")], **given)
    assert (done.returncode, files(tmp_path / "there")) == (0, files(tree)), done.stderr
