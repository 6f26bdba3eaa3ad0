"""The results of a comparison in a folder, found again by what was asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from corral.kernel.errors import CorralError
from corral.sim.comparison import Question
from corral.sim.results import Result, read_result, write_result


class StoredResults:
    """A file for each policy of a comparison, with the hash of its question.

    Hashes are taken before anything is played, so a file that changes meanwhile is not taken for the one that was read.
    """

    def __init__(self, folder: Path, questions: Sequence[Question]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._digests = {question: question.digest() for question in questions}

    def found(self) -> Iterator[tuple[Question, Result]]:
        """Yield the questions whose result is there; a file that holds no result, or another one, counts as absent."""
        for question, digest in self._digests.items():
            try:
                result = read_result(self._file(question))
            except CorralError:
                continue
            if result.question == digest:
                yield question, result

    def keep(self, question: Question, result: Result) -> None:
        """Write the result of a question."""
        write_result(msgspec.structs.replace(result, question=self._digests[question]), self._file(question))

    def _file(self, question: Question) -> Path:
        return self._folder / f"{question.policy.replace('/', '-')}.json"
