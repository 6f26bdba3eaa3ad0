"""A core that keeps a journal in memory, and a candidate that is compared with it."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from corral.control.core.driver import Work
from corral.control.journal.blocks import BlockReader
from corral.control.journal.folder import JournalFolder
from corral.control.journal.records import Record, decoded, encoded
from corral.control.journal.rules import Rules
from corral.control.shadow.comparison import Question, compare
from corral.control.shadow.lives import CandidateRules
from corral.model.policy_shadow import Counts, ShadowReport
from tests.control.core.virtual import BEGIN
from tests.control.journal.journals import Journaled

FIFO = Rules("fifo", documents=False)


class Kept:
    """A source of these records."""

    def __init__(self, records: Iterable[Record], problem: str = "") -> None:
        self.problem = problem
        self._records = [encoded(each) for each in records]

    def records(self, since: float) -> Iterator[bytes]:
        """All of them."""
        return iter(self._records)


def kept_journal(folder: Path, *, jobs: int, seconds: float) -> Path:
    """The folder of a journal of a server with jobs that wait for one node, of so many seconds."""
    played = Journaled(FIFO, nodes=1)
    for number in range(jobs):
        lasts = 1000 - number
        played.submit(f"job-{number}", float(number), devices=4, work=Work(float(lasts)), maxDuration=lasts + 1)
    played.run(seconds)
    written = JournalFolder(folder, most_bytes=10**9, most_seconds=1e9)
    for each in records_of(played):
        written.add(encoded(each), BEGIN)
    written.close()
    return written.folder


def records_of(played: Journaled) -> list[Record]:
    """What the journal has so far."""
    played.blocks.flush()
    return [decoded(data) for data in BlockReader(io.BytesIO(played.file.getvalue()))]


def beside(
    played: Journaled | Kept, policy: str = "", documents: Sequence[str] | None = None, **more: Any
) -> ShadowReport:
    """Compare a candidate with what has happened so far; times of `more` are seconds after the beginning."""
    for name in ("since", "until", "idle_until"):
        if name in more:
            more[name] += BEGIN
    source = played if isinstance(played, Kept) else Kept(records_of(played))
    return compare(source, Question(CandidateRules(policy, documents), policy or "documents", **more))


def total(report: ShadowReport) -> Counts:
    """All decisions of a report."""
    return report.total.decisions


def differences(report: ShadowReport) -> list[tuple[str, str, float | None, float | None]]:
    """Kind, job, and the seconds after the beginning at which both decided."""
    return [(each.kind, each.name, _seconds(each.in_force), _seconds(each.candidate)) for each in report.differences]


def _seconds(at: str | None) -> float | None:
    return None if at is None else datetime.fromisoformat(at).timestamp() - BEGIN
