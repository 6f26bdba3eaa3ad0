"""The journal's files on a server: a kill loses no record, full ones are packed, old ones go, a full disk stops nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from corral.control.journal import folder as folder_module
from corral.control.journal.folder import JournalFolder, recorded

ROOT = Path(__file__).resolve().parents[3]
CHILD = """
import sys
from pathlib import Path
from corral.control.journal.folder import JournalFolder
folder = JournalFolder(Path(sys.argv[1]), most_bytes=10**9, most_seconds=1e9)
for number in range(10**9):
    folder.add(b"record %d" % number, 1000.0)
    print(number, flush=True)
"""


def journal(path: Path, *, most_bytes: int = 10**9, most_seconds: float = 1e9) -> JournalFolder:
    return JournalFolder(path / "journal", most_bytes=most_bytes, most_seconds=most_seconds)


def kinds(path: Path) -> list[str]:
    return sorted(each.suffix for each in (path / "journal").iterdir())


def test_a_kill_loses_no_record_that_was_added(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CHILD, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for _ in range(2000):
            child.stdout.readline()
        child.send_signal(signal.SIGKILL)
        added = [2000 + at for at, _ in enumerate(child.stdout)]
    found = list(recorded(tmp_path))
    assert found == [b"record %d" % number for number in range(len(found))]
    assert len(found) >= (added[-1] if added else 1999) + 1
    after = JournalFolder(tmp_path, most_bytes=10**9, most_seconds=1e9)
    after.pack()
    assert [each.suffix for each in tmp_path.iterdir()] == [".journal"] and list(recorded(tmp_path)) == found


def test_full_files_are_packed_and_read_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "_FULL_BYTES", 5000)
    found = journal(tmp_path)
    records = [b"record %04d" % number * 20 for number in range(100)]
    for number, record in enumerate(records):
        found.add(record, 1000.0 - number)  # a clock that goes back
        if number == 60:
            found.pack()
    assert ".journal" in kinds(tmp_path) and kinds(tmp_path).count(".open") >= 2
    assert list(recorded(found.folder)) == records
    found.pack()
    found.sync()
    assert kinds(tmp_path).count(".open") == 1 and list(recorded(found.folder)) == records
    assert all(each.stat().st_mode & 0o077 == 0 for each in (found.folder, *found.folder.iterdir()))
    found.close()


def test_a_file_that_was_cut_off_is_packed_to_its_last_whole_record(tmp_path: Path) -> None:
    found = journal(tmp_path)
    found.add(b"whole", 1000.0)
    found.add(b"cut off", 1000.0)
    found.close()
    (file,) = found.folder.iterdir()
    os.truncate(file, file.stat().st_size - 3)
    (found.folder / "000000000000001.open").write_bytes(b"CORR")
    journal(tmp_path).pack()
    assert kinds(tmp_path) == [".journal", ".journal"] and list(recorded(found.folder)) == [b"whole"]


def test_it_is_idle_when_all_is_synced_and_packed(tmp_path: Path) -> None:
    found = journal(tmp_path)
    assert found.is_idle
    found.add(b"one", 1.0)
    assert not found.is_idle
    found.sync()
    assert found.is_idle
    found.begin_file()
    assert not found.is_idle
    found.pack()
    assert found.is_idle


def test_the_oldest_files_go_first(tmp_path: Path) -> None:
    found = journal(tmp_path, most_bytes=3000, most_seconds=1000.0)
    for number in range(5):
        found.add(os.urandom(900), float(number))
        found.begin_file()
    found.pack()
    for number, file in enumerate(sorted(found.folder.iterdir())):
        os.utime(file, (1000.0 + number, 1000.0 + number))
    names = sorted(each.name for each in found.folder.iterdir())
    found.tidy(1500.0)
    assert sorted(each.name for each in found.folder.iterdir()) == names[2:]
    found.tidy(2003.5)
    assert sorted(each.name for each in found.folder.iterdir()) == names[4:]
    found.tidy(9000.0)
    assert not list(found.folder.iterdir())
