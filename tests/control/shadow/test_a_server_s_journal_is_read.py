"""The journal of a server is read while it is written: its files only, from the last start before a time."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from corral.control.core.driver import Work
from corral.control.journal.blocks import MAGIC
from corral.control.journal.folder import JournalFolder
from corral.control.journal.records import Begun, Record, Step, decoded, encoded
from corral.control.shadow.comparison import Question, compare
from corral.control.shadow.lives import CandidateRules
from corral.control.shadow.source import FileSource, FolderSource
from corral.kernel.errors import Forbidden, InvalidInput, NotFound
from tests.control.core.virtual import BEGIN
from tests.control.journal.journals import Journaled
from tests.control.shadow.shadows import FIFO, records_of


@pytest.fixture(scope="module")
def records() -> list[Record]:
    """Two starts of a scheduler with jobs that wait for one node."""
    played = Journaled(FIFO, nodes=1)
    for number in range(6):
        seconds = 1000 - 100 * number
        work = Work(float(seconds))
        played.submit(f"job-{number}", 10.0 * number, devices=4, work=work, maxDuration=seconds + 1)
    played.run(1500.0)
    played.begin_again()
    played.run(10_000.0)
    return records_of(played)


@pytest.fixture
def folder(tmp_path: Path, records: list[Record]) -> Path:
    """The journal of a server: the first start is packed, the second is being written."""
    written = JournalFolder(tmp_path / "journal", most_bytes=10**9, most_seconds=1e9)
    for each in records:
        if isinstance(each, Begun) and each.at > BEGIN:
            written.begin_file()
            written.pack()
        written.add(encoded(each), each.at if isinstance(each, Begun) else 0.0)
    written.close()
    return tmp_path / "journal"


def read(folder: Path, since: float = -1e18) -> tuple[list[Record], str]:
    source = FolderSource(folder)
    return [decoded(each) for each in source.records(since)], source.problem


def file_of(folder: Path, ending: str) -> Path:
    (found,) = folder.glob(f"*{ending}")
    return found


def test_all_files_are_read_or_those_from_the_last_start_on(folder: Path, records: list[Record]) -> None:
    assert read(folder) == (records, "")
    second = next(at for at, each in enumerate(records) if isinstance(each, Begun) and each.at > BEGIN)
    assert read(folder, BEGIN + 1600) == (records[second:], "")
    assert read(folder, BEGIN + 100) == (records, "")


def test_what_is_being_written_may_be_cut_off(folder: Path, records: list[Record]) -> None:
    newest = file_of(folder, ".open")
    newest.write_bytes(newest.read_bytes()[:-3])
    assert read(folder) == (records[:-1], "")
    newest.write_bytes(MAGIC[:5])
    assert [type(each) for each in read(folder)[0]].count(Begun) == 1


def test_a_packed_file_that_was_altered_ends_it_with_a_sentence(folder: Path) -> None:
    packed = file_of(folder, ".journal")
    data = bytearray(packed.read_bytes())
    data[-60] ^= 1
    packed.write_bytes(data)
    found, problem = read(folder)
    assert "was altered: its checksum does not fit" in problem and packed.name in problem
    assert not any(isinstance(each, Step) and each.at > BEGIN + 1500 for each in found)
    with pytest.raises(NotFound, match="was altered"):
        compare(FolderSource(folder), Question(CandidateRules("srtf"), "srtf"))


def test_a_newer_version_and_no_journal_are_refused(folder: Path, tmp_path: Path) -> None:
    packed = file_of(folder, ".journal")
    data = bytearray(packed.read_bytes())
    data[9] = 99
    packed.write_bytes(data)
    with pytest.raises(InvalidInput, match="version 99"):
        read(folder)
    with pytest.raises(NotFound, match="`journal_days` above 0"):
        FolderSource(tmp_path / "nothing")
    with pytest.raises(NotFound, match="corral journal export"):
        FileSource(tmp_path / "nothing.journal")


def test_a_journal_of_another_user_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(Forbidden, match="may be read by its owner alone"):
        read(folder)


def test_comparing_changes_no_file(folder: Path) -> None:
    before = digests(folder)
    report = compare(FolderSource(folder), Question(CandidateRules("srtf"), "srtf"))
    assert report.total.decisions.alike and report.total.decisions.only_candidate and not report.problem
    assert digests(folder) == before


def test_what_is_older_than_what_is_kept_is_left_out_and_told(folder: Path) -> None:
    file_of(folder, ".journal").unlink()
    report = compare(FolderSource(folder), Question(CandidateRules("srtf"), "srtf", since=BEGIN + 100))
    assert report.notes == ("The journal is kept from 2001-09-09T02:11:40.000Z on; the comparison begins there.",)
    assert report.total.in_force.started == 4


def test_a_comparison_may_be_made_again_while_the_journal_grows(tmp_path: Path, records: list[Record]) -> None:
    written = JournalFolder(tmp_path / "journal", most_bytes=10**9, most_seconds=1e9)
    question = Question(CandidateRules("srtf"), "srtf")
    seen: list[int] = []
    for part in (records[: len(records) // 2], records[len(records) // 2 :]):
        for each in part:
            written.add(encoded(each), 0.0)
        seen.append(compare(FolderSource(tmp_path / "journal"), question).total.in_force.started)
    written.close()
    assert 0 < seen[0] < seen[1] == 6


def digests(folder: Path) -> dict[str, str]:
    """The hash of each file."""
    return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in folder.iterdir()}
