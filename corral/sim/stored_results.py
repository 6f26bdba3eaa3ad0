"""The results of a comparison or a sweep in a folder, found again by what was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import msgspec

from corral.kernel.errors import CorralError
from corral.sim.comparison import Question
from corral.sim.files import hash_of_all
from corral.sim.results import Result, read_result, write_result


def policy_name(question: Question) -> str:
    """Return the name of a result where only policies differ."""
    return question.policy


class StoredResults:
    """A file for each question, with the question's hash; `name` returns the file's name without its ending.

    Hashes are taken before anything is played, so a file that changes meanwhile is not taken for the one that was read.
    """

    def __init__(
        self, folder: Path, questions: Sequence[Question], name: Callable[[Question], str] = policy_name
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._name = name
        hashed = cache(hash_of_all)
        self._digests = {question: question.digest(hashed) for question in questions}

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
        return self._folder / f"{self._name(question).replace('/', '-')}.json"
