"""The difference between the documents of two jobs, for `corral diff JOB JOB`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from corral.cli.job_arrays import one_job

if TYPE_CHECKING:
    from corral.client.sync import Client


def diff_of_jobs(client: Client, first: str, second: str) -> str:
    """Return how the canonical document of the second job differs from that of the first; "" where it does not."""
    with one_job(client, first):
        before = client.document(first)
    with one_job(client, second):
        after = client.document(second)
    return document_diff(before, after, first, second)


def document_diff(before: Mapping[str, Any], after: Mapping[str, Any], first: str, second: str) -> str:
    """Return the unified diff of two documents, written as YAML."""
    import yaml

    one, other = (
        yaml.dump(dict(each), Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True).splitlines(keepends=True)
        for each in (before, after)
    )
    return "".join(difflib.unified_diff(one, other, fromfile=first, tofile=second))
