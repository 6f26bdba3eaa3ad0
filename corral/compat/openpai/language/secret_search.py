"""Search a text for many strings, in time that grows with the text's length alone.

Whitespace is folded before comparing: a run of any kind equals one space. Comparisons are counted and bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

WHOLE_WORD: Final = 8
"""Characters from which a secret is also found inside longer words.

A shorter secret is found only as a whole word, because a match inside one proves nothing.
"""
_BLANK: Final = re.compile(r"\s+")
_LINE: Final = re.compile(r"[^\S\n]+")
_COMPARED: Final = 256
"""Characters of a string that count as one comparison."""


class TooMuchWork(Exception):
    """The text needs more comparisons than allowed."""


def folded(text: str) -> str:
    """The text with each run of whitespace as one space, and none at the ends."""
    return _BLANK.sub(" ", text).strip()


def folded_comments(text: str) -> str:
    """The folded text, with comments of consecutive lines joined."""
    return folded(" ".join(line.lstrip("# \t") for line in text.splitlines()))


class Needles:
    """Folded strings to search for, indexed by their first WHOLE_WORD characters."""

    def __init__(self, needles: Iterable[str], most_work: int) -> None:
        """Search for `needles` with at most `most_work` comparisons in total."""
        self.work = 0
        """The comparisons made so far."""
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
        """Whether any of them occurs in a folded text. Raises TooMuchWork."""
        return any(self._sizes(text))

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The (begin, end) of each occurrence in the lines of a text, with any whitespace between its words.

        Of overlapping occurrences the first counts, and the longest at one place. Raises TooMuchWork.
        """
        line, begins = _folded_line(text)
        found, last = [], 0
        for at, size in sorted(self._sizes(line)):
            if at >= last:
                last = at + size
                found.append((begins[at], begins[last - 1] + 1))
        return found

    def _sizes(self, text: str) -> Iterator[tuple[int, int]]:
        """Every position at which one of them occurs, with the length of the longest."""
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
        """The length of the first needle that occurs at a position; 0 for none."""
        for needle in needles:
            self.work += 1 + len(needle) // _COMPARED
            if self.work > self._most:
                raise TooMuchWork
            if text.startswith(needle, at):
                return len(needle)
        return 0


def _words_of(size: int) -> re.Pattern[str]:
    """A pattern that matches at every position where `size` characters begin and end at word boundaries."""
    return re.compile(rf"(?<!\w)(?=.{{{size}}}(?!\w))", re.DOTALL)


def _folded_line(text: str) -> tuple[str, range | list[int]]:
    """The text with runs of whitespace within a line folded, and the original offset of each character."""
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
