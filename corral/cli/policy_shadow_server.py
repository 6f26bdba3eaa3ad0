"""Have a server compare a candidate policy with the one in force, for `corral policy shadow`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from corral.cli.connection import connect
from corral.cli.progress import question_bar
from corral.cli.times import seconds_of

if TYPE_CHECKING:
    from corral.model.policy_shadow import ShadowReport


class Asked(NamedTuple):
    """What a server is asked to compare."""

    policy: str
    documents: tuple[str, ...] | None
    """Canonical texts; None: those in force."""
    since: str
    until: str
    anew: bool
    within: float
    differences: int


def is_elsewhere(journal: Path) -> bool:
    """Whether there is no journal on this machine, and the user is signed in to a server that may have one."""
    from corral.client import config

    return not journal.is_dir() and bool(config.current().token)


def check_asked(*, server: bool, file: Path | None, follows: bool, data_folder: Path | None) -> None:
    """Check the options that go with `--server`; raises click.UsageError."""
    if server and (file is not None or follows or data_folder is not None):
        raise click.UsageError("--server is without --file, --data, --for and --follow: it reads its own journal once.")


def report_of(asked: Asked) -> ShadowReport:
    """Return the server's report, with its progress on the way; Ctrl-C cancels it.

    Raises InvalidInput for a time that is none, and what the server refuses it with.
    """
    import msgspec

    from corral.model.policy_shadow import ShadowReport

    question = {
        "policy": asked.policy,
        "documents": "\n---\n".join(asked.documents or ()),
        "since": _time("--from", asked.since),
        "until": _time("--to", asked.until),
        "anew": asked.anew,
        "within": asked.within,
        "differences": asked.differences,
    }
    with connect() as client, question_bar() as tell:
        found = client.follow_policy_shadow(tell=tell, **question)
    return msgspec.convert(found, ShadowReport)


def _time(option: str, text: str) -> str:
    from corral.model.records import rfc3339

    seconds = seconds_of(option, text)
    return "" if seconds is None else rfc3339(seconds)
