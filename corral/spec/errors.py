"""Errors of documents: `Problem`, with file, line, column and path, and `SpecError`, which collects them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Final

from corral.kernel.errors import InvalidInput

Path = tuple[str | int, ...]
"""The path of a value in its document, such as `("roles", "worker", "ports", 0)`."""

MAX_PROBLEMS: Final = 100
"""Maximum problems examined per document, which bounds the work on hostile text."""
_SHOWN: Final = 20
_FEW: Final = 1000
_MEANT: Final = '; did you mean "'


@dataclass(frozen=True, slots=True)
class Problem:
    """One error in a document; `line` and `column` count from 1, and 0 means unknown."""

    message: str
    path: Path = ()
    line: int = 0
    column: int = 0
    filename: str = ""

    def __str__(self) -> str:
        where = f"{self.filename or 'document'}:{self.line}:{self.column}" if self.line else self.filename
        return ": ".join(part for part in (where, path_text(self.path), self.message) if part)

    @property
    def suggestion(self) -> str:
        """The word that was probably meant; "" when none is near."""
        return self.message.rpartition(_MEANT)[2].rpartition('"')[0] if _MEANT in self.message else ""

    def to_document(self) -> dict[str, str | int]:
        """The problem as the API returns it."""
        return {
            "path": path_text(self.path),
            "message": self.message,
            "suggestion": self.suggestion,
            "line": self.line,
            "column": self.column,
            "file": self.filename,
        }


class SpecError(InvalidInput):
    """A document that is refused; `problems` is never empty and is sorted by position."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        if not problems:
            raise ValueError("a SpecError without a problem would tell nobody anything")
        known = problems[:MAX_PROBLEMS]
        self.problems = tuple(sorted(known, key=lambda problem: (problem.line, problem.column)))
        lines = [str(problem) for problem in self.problems[:_SHOWN]]
        if len(self.problems) > _SHOWN:
            least = "at least " if len(self.problems) == MAX_PROBLEMS else ""
            lines.append(f"and {least}{len(self.problems) - _SHOWN} more")
        super().__init__("invalid-document", "\n".join(lines), problems=[each.to_document() for each in self.problems])


def path_text(path: Path) -> str:
    """Format a path as people write it: `roles.worker.ports[0]`."""
    out = ""
    for part in path:
        if isinstance(part, int):
            out += f"[{part}]"
        else:
            out += f".{shorten(part)}" if out else shorten(part)
    return out


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """End of a message that suggests the nearest of `known`.

    Lists all of them when none is near and there are at most 30; "" otherwise.
    """
    names = sorted(islice(known, _FEW))
    lowered = {name.lower(): name for name in names}
    near = get_close_matches(word[:100].lower(), lowered, n=1, cutoff=0.6)
    if near:
        return f'{_MEANT}{lowered[near[0]]}"?'
    return f"; expected one of {', '.join(names)}" if 0 < len(names) <= 30 else ""


def shorten(text: str, limit: int = 60) -> str:
    """Cut text to `limit` characters and escape unprintable ones, so that it is safe in a message."""
    kept = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in kept)


def describe(value: object) -> str:
    """Name a given value in a message."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{shorten(value)}"'
    if isinstance(value, int | float):
        return shorten(str(getattr(value, "source", value)))
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list | tuple) else type(value).__name__
