"""The task that a command takes where none is named."""

from __future__ import annotations

from typing import Any, cast

import click
import pytest

from corral.cli.logs import chosen_task
from corral.client.sync import Client


class JustSubmitted:
    """A stand-in for a server whose control has not read the job yet, so that no task is listed."""

    def __init__(self, **targets: int) -> None:
        self._targets = targets

    def tasks(self, job: str, *, limit: int) -> dict[str, Any]:
        return {"items": [], "next": None}

    def job(self, job: str) -> dict[str, Any]:
        return {"roles": [{"name": name, "target": target} for name, target in self._targets.items()]}


def chosen(**targets: int) -> tuple[str, int]:
    return chosen_task(cast("Client", JustSubmitted(**targets)), "digits", "")


def test_the_only_task_of_a_job_that_was_just_submitted_is_known_by_its_document() -> None:
    assert chosen(worker=1) == ("worker", 0)


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        ({"worker": 2}, "Name a task of digits: worker-0, worker-1."),
        ({"ps": 1, "worker": 5000}, "Name a task of digits: ps-0, worker-0, worker-1, …."),
        ({"worker": 0}, "digits has no task yet."),
    ],
)
def test_of_several_tasks_that_are_not_listed_yet_one_is_asked_for(targets: dict[str, int], said: str) -> None:
    with pytest.raises(click.UsageError) as refused:
        chosen(**targets)
    assert refused.value.message == said
