"""Split files of several documents: jobs are submitted one by one, other programs' documents are listed and skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from corral.cli.output import say
from corral.kernel.errors import CorralError

if TYPE_CHECKING:
    from corral.spec.document_splitter import Part

_MARKS: Final = (b"\n---", b"\n...")
_ROLES: Final = (b"roles", b"taskRoles")
"""The fields of which every job without a kind has one: the short form, and that of a dialect."""


def parts_in(text: bytes, shown: str) -> list[Part]:
    """Return the documents of a file that has several; none for a single document or a malformed file.

    A malformed file is left to the server, which reports its problems.
    """
    if not any(mark in text for mark in _MARKS):
        return []
    from corral.spec.document_splitter import parts_of
    from corral.spec.errors import SpecError

    try:
        return parts_of(text, shown)
    except SpecError:
        return []


def job_alone(text: bytes, shown: str) -> list[Part]:
    """Return the only document of a file if its kind, or for one without a kind its roles, make it a job; else none."""
    if not any(word in text for word in (b"kind", *_ROLES)):
        return []
    from corral.spec.document_splitter import Part, Sort, sort_of
    from corral.spec.errors import SpecError
    from corral.spec.yaml_source import parse_source

    try:
        data = parse_source(text, shown).data
    except SpecError:
        return []
    if not isinstance(data, dict) or sort_of(data) is not Sort.JOB:
        return []
    if "kind" not in data and not any(word.decode() in data for word in _ROLES):
        return []
    return [Part(Sort.JOB, str(data.get("kind", "")), 1, 0, text.decode())]


def jobs_of(parts: list[Part]) -> list[bytes]:
    """Return the text of each job."""
    from corral.spec.document_splitter import Sort

    return [part.text.encode() for part in parts if part.sort is Sort.JOB]


def configuration_of(parts: list[Part]) -> bytes:
    """Return the text of all configuration documents; empty if there are none."""
    from corral.spec.document_splitter import Sort, joined

    return joined([part for part in parts if part.sort is Sort.CONFIGURATION]).encode()


def tell_left_out(parts: list[Part]) -> None:
    """List the documents of other programs on standard error."""
    from corral.spec.document_splitter import Sort, left_out

    if others := [part for part in parts if part.sort is Sort.OTHER]:
        say(left_out(others))


def submit_each(texts: list[bytes], check: Callable[[bytes], None], submit: Callable[[bytes], int]) -> int:
    """Submit several jobs of one file, after all of them passed the check; return the highest exit code.

    Raises the error of the first job that is refused, and prints how many were submitted before it.
    """
    for text in texts:
        check(text)
    worst = 0
    for at, text in enumerate(texts):
        with _counted(at, len(texts)):
            worst = max(worst, submit(text))
    return worst


@contextmanager
def _counted(done: int, of: int) -> Iterator[None]:
    try:
        yield
    except CorralError:
        if done:
            say(f"{done} of {of} jobs of the file were submitted before this one was refused.")
        raise
