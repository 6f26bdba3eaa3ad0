"""Check a job file by the server, which knows the secrets of the caller's own jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from corral.cli.connection import connect

if TYPE_CHECKING:
    from corral.client.schema import JobDocument, ProblemView
    from corral.spec.errors import Problem

source_option = click.option(
    "--from",
    "source",
    default="",
    metavar="JOB",
    help="Ask the server: your job that the file came from, whose secrets replace ******.",
)


def checked_by_server(text: bytes, shown: str, parameters: Mapping[str, str], source: str) -> JobDocument:
    """Return the canonical document of a job file whose placeholders stand for the secrets of the job `source`.

    Raises SpecError with every problem, which names the file as `shown`.
    """
    from corral.spec.errors import SpecError

    with connect() as client:
        found = client.validate(text, parameters=parameters, source=source)
    document = found.get("document")
    if document is None:
        raise SpecError(_problems(found["problems"], shown))
    return document


def _problems(told: Sequence[ProblemView], shown: str) -> list[Problem]:
    from corral.spec.errors import Problem

    return [
        Problem(
            each["message"], tuple(each["path"].split(".")) if each["path"] else (), each["line"], each["column"], shown
        )
        for each in told
    ]
