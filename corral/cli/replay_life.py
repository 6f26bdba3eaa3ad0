"""What would have become of a journal's jobs under other rules, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from corral.cli.output import span
from corral.cli.progress import progress_bar
from corral.cli.what_if import comparison_text

if TYPE_CHECKING:
    from corral.client.schema import WhatIfAnswer

_ASSUMPTIONS = (
    "Jobs are submitted, stopped and changed when they were, and machines come and go as they did.",
    "Tasks run as long as they did, but those of an elastic job until its work is done.",
    "A preempted task goes on where it was if it did so before, else from the beginning.",
    "A task that did not end by itself runs until a request stops it.",
    "What tasks reported and saved comes where their work is as far as it was then.",
    "Where nothing begins or ends for an hour, plans by time alone are an hour apart.",
)
_PARTS = 1000
"""Steps of the progress bar."""


def life_of(file: BinaryIO, policy: str, documents: Path | None) -> tuple[dict[str, Any], str]:
    """Return what became of the jobs as it was and under the other rules, and why the file ended early, if it did.

    Raises InvalidInput or NotFound for a file, a policy or a folder that cannot be followed.
    """
    import msgspec

    from corral.control.journal.living_on import live_on
    from corral.service.what_if.comparison import compare

    with progress_bar(_PARTS, "Living on") as advance:
        found = live_on(
            file,
            policy=policy,
            documents=None if documents is None else _texts(documents),
            told=lambda part: advance(int(part * _PARTS)),
        )
    changes = [f"policy {policy}"] * bool(policy) + [f"the documents of {documents}"] * (documents is not None)
    answer = compare(found.courses, horizon=found.seconds, changes=tuple(changes), shown=lambda queue: True)
    answer = msgspec.structs.replace(answer, assumptions=(*_ASSUMPTIONS, *found.assumptions))
    return msgspec.to_builtins(answer), found.problem


def life_text(answer: dict[str, Any], *, everything: bool) -> str:
    """Return the two lives for people."""
    length = span(answer["horizonSeconds"])
    head = f"{length} from {answer['at']}, as it was → under {' and '.join(answer['changes'])}."
    return f"{head}\n\n{comparison_text(cast('WhatIfAnswer', answer), everything=everything, starts='STARTS AFTER')}"


def _texts(folder: Path) -> Sequence[str]:
    from corral.model.configuration import canonical
    from corral.sim.policy_test.documents import documents_of

    return [canonical(each) for each in documents_of(folder).documents()]
