"""Turn clauses of the scheduler into sentences for people: jobs by their names, one full stop at the end.

The scheduler knows jobs by their ids alone. Whoever stores or shows what it said puts names in the place of ids.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_ID: Final = re.compile(r"(?<![0-9A-Za-z_.-])[0-9][0-9a-z]{12}(?![0-9A-Za-z_-]|\.[0-9])")
"""What may be a job's id (each begins with a digit until 2318), and not the beginning of an attempt's."""


def by_name(text: str, name_of: Callable[[str], str | None]) -> str:
    """The text with the name of each job in the place of its id; an id that `name_of` does not know stays."""
    return _ID.sub(lambda found: name_of(found[0]) or found[0], text)


def jobs_named(*texts: str) -> tuple[str, ...]:
    """What in the texts may be a job's id, each once, in order."""
    return tuple(dict.fromkeys(found for text in texts for found in _ID.findall(text)))


def sentence(text: str) -> str:
    """A clause as a sentence: a capital at the beginning, one full stop at the end; "" stays "".

    A clause must not begin with a name: its capital would be another name.
    """
    text = text.strip()
    if not text:
        return ""
    return f"{text[0].upper()}{text[1:]}" + ("" if text[-1] in ".!?" else ".")


def array_index(name: str) -> int:
    """The index of a job in its array, whose jobs are called NAME-0, NAME-1 and so on."""
    return int(name.rpartition("-")[2])


def held_by_array(before: str, most: int) -> str:
    """What a job of an array waits for while as many of its array run as `maxParallel` allows."""
    return f"Waits for {before} to end: of its array {most} may run at once (maxParallel)."
