"""Finds which of many strings stand in a text, at a cost that grows with the length of the text alone.

Whitespace is compared folded: a run of it, of any sort, is one space. What a text is compared with is counted and bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

WHOLE_WORD: Final = 8
"""A secret with fewer characters is only found as a whole word: as a part of others it says nothing."""
_BLANK: Final = re.compile(r"\s+")
_LINE: Final = re.compile(r"[^\S\n]+")
_COMPARED: Final = 256
"""So many characters are compared at the cost of one look."""


class TooMuchWork(Exception):
    """A text takes more comparisons than are made."""


def folded(text: str) -> str:
    """The text with each run of whitespace as one space, and none around it."""
    return _BLANK.sub(" ", text).strip()


def folded_comments(text: str) -> str:
    """The text folded, where comments in lines that follow each other are one text."""
    return folded(" ".join(line.lstrip("# \t") for line in text.splitlines()))


class Needles:
    """Folded texts that are looked for, found by how they begin."""

    def __init__(self, needles: Iterable[str], most_work: int) -> None:
        """Look for these, with at most so many comparisons in all."""
        self.work = 0
        """How many comparisons were made."""
        self._most = most_work
        self._begun: dict[str, list[str]] = {}
        words: dict[int, set[str]] = {}
        for needle in sorted(set(needles) - {""}, key=len, reverse=True):
            if len(needle) < WHOLE_WORD:
                words.setdefault(len(needle), set()).add(needle)
            else:
                self._begun.setdefault(needle[:WHOLE_WORD], []).append(needle)
        self._words = [(_words_of(size), size, found) for size, found in sorted(words.items())]

    def stand_in(self, text: str) -> bool:
        """Whether one of them stands in a folded text. Raises TooMuchWork."""
        return any(self._sizes(text))

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where they stand in the lines of a text, each with any whitespace; of several in one place the longest.

        Raises TooMuchWork.
        """
        line, begins = _folded_line(text)
        found, last = [], 0
        for at, size in sorted(self._sizes(line)):
            if at >= last:
                last = at + size
                found.append((begins[at], begins[last - 1] + 1))
        return found

    def _sizes(self, text: str) -> Iterator[tuple[int, int]]:
        """Every place at which one of them stands, with how long the longest is."""
        short: dict[int, int] = {}
        for pattern, size, words in self._words:
            ends = ((found.start(), found.start() + size) for found in pattern.finditer(text))
            short.update([(begin, size) for begin, end in ends if text[begin:end] in words])
        if self._begun:
            for at in range(len(text) - WHOLE_WORD + 1):
                needles = self._begun.get(text[at : at + WHOLE_WORD])
                if needles and (size := self._longest(needles, text, at)):
                    short.pop(at, None)
                    yield at, size
        yield from short.items()

    def _longest(self, needles: Iterable[str], text: str, at: int) -> int:
        """How long the first is that stands at a place; 0 for none."""
        for needle in needles:
            self.work += 1 + len(needle) // _COMPARED
            if self.work > self._most:
                raise TooMuchWork
            if text.startswith(needle, at):
                return len(needle)
        return 0


def _words_of(size: int) -> re.Pattern[str]:
    """What finds every place at which so many characters begin and end as a word does."""
    return re.compile(rf"(?<!\w)(?=.{{{size}}}(?!\w))", re.DOTALL)


def _folded_line(text: str) -> tuple[str, range | list[int]]:
    """The text with each run of whitespace within a line as one space, and where each character of that stands."""
    parts, begins, last = [], list[int](), 0
    for run in _LINE.finditer(text):
        if run[0] == " ":
            continue
        parts += [text[last : run.start()], " "]
        begins += range(last, run.start() + 1)
        last = run.end()
    if not parts:
        return text, range(len(text))
    begins += range(last, len(text))
    return "".join([*parts, text[last:]]), begins
