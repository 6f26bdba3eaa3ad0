"""Turn the scheduler's clauses into sentences for people: job names instead of ids, and one full stop at the end.

The scheduler knows jobs by their ids alone; callers that store or show its texts insert the names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

_ID: Final = re.compile(r"(?<![0-9A-Za-z_.(-])[0-9][0-9a-z]{12}(?![0-9A-Za-z_-]|\.[0-9])")
"""A text that may be a job id (all begin with a digit until 2318), but not the beginning of an attempt id.

One in brackets is left: it tells a name apart from an equal one, which is there already.
"""


def by_name(text: str, name_of: Callable[[str], str | None]) -> str:
    """Replace each job id in the text by the job's name; ids unknown to `name_of` stay."""
    return _ID.sub(lambda found: name_of(found[0]) or found[0], text)


def jobs_named(*texts: str) -> tuple[str, ...]:
    """The possible job ids in the texts, without duplicates, in order."""
    return tuple(dict.fromkeys(found for text in texts for found in _ID.findall(text)))


def told_apart(jobs: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """What each job is called beside the others: its name, or USER~NAME where several have it; by id.

    `jobs` has the user and the name of each. Two of one user with one name have their ids as well.
    """
    names = Counter(name for _, name in jobs.values())
    both = Counter(jobs.values())
    called = {}
    for job, (user, name) in jobs.items():
        alone = name if names[name] == 1 else f"{user}~{name}"
        called[job] = alone if both[user, name] == 1 else f"{alone} ({job})"
    return called


def sentence(text: str) -> str:
    """Make a clause a sentence: capital first letter, one full stop at the end; "" stays "".

    A clause must not begin with a name: capitalizing it would change the name.
    """
    text = text.strip()
    if not text:
        return ""
    return f"{text[0].upper()}{text[1:]}" + ("" if text[-1] in ".!?" else ".")


def array_index(name: str) -> int:
    """The index of a job in its array, whose jobs are named NAME-0, NAME-1 and so on."""
    return int(name.rpartition("-")[2])


def held_by_array(before: str, most: int) -> str:
    """The message for a job of an array that waits while `maxParallel` jobs of its array run."""
    return f"Waits for {before} to end: of its array {most} may run at once (maxParallel)."


def waits_for_jobs(named: Sequence[tuple[str, str]], unnamed: int = 0) -> str:
    """The message for a job that waits for others: some by name and condition of `dependsOn`, the rest only counted."""
    if not named and not unnamed:
        return "Waits for the jobs that it depends on."
    if not named:
        return f"Waits for {unnamed} other job{'s' if unnamed > 1 else ''} to end."
    ends = ", ".join(f"{name} to {'end' if condition == 'ended' else 'succeed'}" for name, condition in named)
    return f"Waits for {ends}{f' and {unnamed} more' if unnamed else ''}."
