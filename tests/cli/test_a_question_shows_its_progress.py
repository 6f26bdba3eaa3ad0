"""`corral what-if` shows a bar on a terminal, and Ctrl-C cancels the question on the server."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from corral.cli.progress import progress_text
from corral.model.what_if_progress import AFTER, WhatIfProgress
from tests.api.harness import Server, serving
from tests.api.test_questions_are_answered_later import Held
from tests.api.test_questions_are_answered_later import held as held_control
from tests.api.test_work_ends_with_its_caller import until

held = held_control


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running front."""
    with serving(tmp_path_factory.mktemp("front")) as running:
        yield running


def test_a_bar_has_its_share_its_percentage_and_the_sentence() -> None:
    told: Any = {"fraction": 0.426, "says": "Plays the changes."}
    assert progress_text(cast(Any, told)) == "[#########-----------]  43%  Plays the changes."


@contextlib.contextmanager
def asking(held: Held, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The command in a process whose standard error is a terminal, and the other end of that."""
    environment = {
        **os.environ, "CORRAL_URL": held.server.url, "CORRAL_TOKEN": held.server.token("alice"),
        "CORRAL_CONFIG": str(folder / "config.json"), "COLUMNS": "120",
    }  # fmt: skip
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "corral.cli.main", "what-if"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        try:
            yield process, ours
        finally:
            process.kill()
            os.close(ours)


def shown(terminal: int, wanted: str) -> str:
    """What a terminal shows until `wanted` comes."""
    text, end = "", time.monotonic() + 120
    while wanted not in text:
        assert time.monotonic() < end, text
        if select.select([terminal], [], [], 1.0)[0]:
            text += os.read(terminal, 65536).decode(errors="replace")
    return text


def test_the_bar_moves_and_the_answer_follows(held: Held, tmp_path: Path) -> None:
    held.control.progress = [WhatIfProgress(0.75, AFTER, 1, 1)]
    with asking(held, tmp_path) as (process, terminal):
        text = shown(terminal, "75%")
        assert re.search(r"\[#{15}-{5}\]  75%  Plays the changes\.", text)
        held.go_on()
        assert process.stdout is not None
        assert "The next 1d from " in process.stdout.read().decode()
        assert process.wait(120) == 0


def test_ctrl_c_cancels_the_question_on_the_server(held: Held, tmp_path: Path) -> None:
    with asking(held, tmp_path) as (process, terminal):
        shown(terminal, "Prepares the changes.")
        until(held.control.begun.is_set)
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130
        assert "Interrupted." in shown(terminal, "Interrupted.")
    until(lambda: held.control.cancelled == 1)
    with held.server.client("alice") as alice:
        assert alice.what_if_questions()["items"] == []
