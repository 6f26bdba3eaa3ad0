"""Event files of remote folders: where their copies are, with which variables they are made, and what is said of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from corral.runtime.event_folder import Allowance, EventFolder
from corral.runtime.event_reports import EventReports, NamedSource, sources_of
from corral.runtime.remote_events import RemoteEvents
from corral.runtime.reports import own_folder
from corral.storage import event_mirror
from corral.storage.__main__ import main
from tests.runtime.event_files.encoder import scalars, write
from tests.runtime.test_event_files_are_told import ATTEMPT, NOW, Server, plan

URI = "s3://bucket/runs"
TELLS_VARIABLES = """
import os, sys
with open(sys.argv[-1] + "/variables", "w") as file:
    file.write(f"{os.environ.get('AWS_SECRET_ACCESS_KEY')} {os.environ.get('PYTHONPATH')}")
"""
FAILS = "import sys; print('some warning\\ncorral: the store is away.', file=sys.stderr); sys.exit(int(sys.argv[1]))"


def program(text: str, *words: str) -> list[str]:
    return [sys.executable, "-c", text, *words]


def look(source: RemoteEvents) -> None:
    source.look(0.0, Allowance(1000, 1000))


def test_copies_are_among_the_runtimes_files_which_go_with_the_attempt(tmp_path: Path) -> None:
    given = plan(tmp_path / "work", tensorboard=[URI], stage_command=["true"], given={"folder": str(tmp_path / "own")})
    (found,) = sources_of(given)
    assert isinstance(found.source, RemoteEvents)
    (folder,) = Path(own_folder(given)).iterdir()
    assert folder.is_relative_to(tmp_path / "own") and folder.stat().st_mode & 0o077 == 0
    found.source.close()
    assert not folder.exists()


def test_a_task_runs_on_where_no_copies_can_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "full").write_text("this is no folder")
    given = {"folder": str(tmp_path / "full"), "own_events": True}
    found = sources_of(plan(tmp_path, tensorboard=[URI], stage_command=["true"], given=given))
    assert [each.name for each in found] == [""]
    assert capsys.readouterr().err == (
        f"corral: the event files at {URI} are not read, as no folder for copies can be made: Not a directory.\n"
    )


@pytest.mark.parametrize("more", [{}, {"entry_file": "/entry"}, {"shared": "/shared"}, {"owner": 1234}], ids=str)
def test_copies_are_made_with_the_secrets_of_the_task_where_the_task_makes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/of/the/runtime")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    given = plan(tmp_path, tensorboard=[URI], stage_command=program(TELLS_VARIABLES), **more)
    (found,) = sources_of(given, {"AWS_SECRET_ACCESS_KEY": "sesame", "PYTHONPATH": "/of/the/command"})
    assert isinstance(found.source, RemoteEvents)
    look(found.source)
    (told,) = Path(own_folder(given)).glob("*/variables")
    assert told.read_text() == ("None /of/the/runtime" if more else "sesame /of/the/runtime")
    found.source.close()


def test_each_trouble_of_each_folder_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    away = RemoteEvents(program(FAILS, "1"), URI, 600, str(tmp_path / "a"))
    full = RemoteEvents(program(FAILS, "3"), URI, 600, str(tmp_path / "b"))
    missing = RemoteEvents(["/no/such/program"], URI, 600, str(tmp_path / "c"))
    write(tmp_path / "here", b"this is no event file, and long enough for a header")
    write(next((tmp_path / "b").iterdir()), scalars((NOW - 5, "loss", 1.0)))
    sources = [
        *(NamedSource(name, each) for name, each in (("away", away), ("full", full), ("missing", missing))),
        NamedSource("here", EventFolder(str(tmp_path / "here"))),
    ]
    server = Server()
    now = (tmp_path / "here").stat().st_mtime
    each = EventReports(server, ATTEMPT, sources, lambda: now)
    each.look()
    each.last_look()
    assert sorted(capsys.readouterr().err.splitlines()) == [
        f"corral: {URI} cannot be read: No such file or directory.",
        "corral: the event files in here are not read as a whole: a file is broken: "
        "the checksum of a record's length is wrong.",
        "corral: the store is away.",
        "corral: the store is away.",
    ]
    each.close()


def test_the_program_says_that_nothing_more_is_copied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_mirror, "MOST_KEPT", 1 << 20)
    monkeypatch.setattr(event_mirror, "mirror", lambda source, folder, since: 0)
    words = ["stage", "--events", "600", URI, str(tmp_path)]
    assert main(words) == 0
    write(tmp_path / "a", b"x" * (1 << 20))
    assert main(words) == 3
    assert capsys.readouterr().err == (
        f"corral: {URI} has 1 MiB of event files; what is written after them is left out.\n"
    )
