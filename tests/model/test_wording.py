"""The scheduler's messages become sentences: jobs by name, one full stop, and no name with another capital."""

from __future__ import annotations

import pytest

from corral.model.messages import by_name, held_by_array, sentence, waits_for_jobs

NAMES = {"1m83k2c4v5w6x": "digits", "1m83k2c4v5w6y": "seeds-0"}


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Behind job 1m83k2c4v5w6x, the first in the queue order.", "Behind job digits, the first in the queue order."),
        ("It waits for jobs 1m83k2c4v5w6x and 1m83k2c4v5w6y.", "It waits for jobs digits and seeds-0."),
        ("It waits for job 1m83k2c4v5w6z.", "It waits for job 1m83k2c4v5w6z."),
        ("main-0 of attempt 1m83k2c4v5w6x.0.main.0.1", "main-0 of attempt 1m83k2c4v5w6x.0.main.0.1"),
        ("GPU-1m83k2c4v5w6x is an administrator's", "GPU-1m83k2c4v5w6x is an administrator's"),
    ],
)
def test_jobs_that_are_known_are_called_by_their_names(said: str, shown: str) -> None:
    assert by_name(said, NAMES.get) == shown


@pytest.mark.parametrize(
    ("clause", "shown"),
    [
        ("the job was suspended by ada", "The job was suspended by ada."),
        ("Job high of ada has priority 5.", "Job high of ada has priority 5."),
        ("the node local/node1 is cordoned by root: why not?", "The node local/node1 is cordoned by root: why not?"),
        ("", ""),
    ],
)
def test_a_sentence_ends_with_one_full_stop(clause: str, shown: str) -> None:
    assert sentence(clause) == shown
    assert sentence(sentence(clause)) == shown


def test_a_job_of_an_array_names_the_one_before_it_and_the_bound() -> None:
    assert held_by_array("seeds-0", 2) == "Waits for seeds-0 to end: of its array 2 may run at once (maxParallel)."


@pytest.mark.parametrize(
    ("named", "unnamed", "shown"),
    [
        ([("prepare", "succeeded")], 0, "Waits for prepare to succeed."),
        ([("prepare", "succeeded"), ("clean", "ended")], 2, "Waits for prepare to succeed, clean to end and 2 more."),
        ([], 1, "Waits for 1 other job to end."),
        ([], 3, "Waits for 3 other jobs to end."),
        ([], 0, "Waits for the jobs that it depends on."),
    ],
)
def test_a_job_that_waits_for_others_names_them_or_counts_them(
    named: list[tuple[str, str]], unnamed: int, shown: str
) -> None:
    assert waits_for_jobs(named, unnamed) == shown
