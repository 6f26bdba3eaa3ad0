"""Job ids sort by age even when the clock jumps, and attempt ids parse back."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.kernel.ids import JobIds, attempt_id, job_id, parse_attempt_id

TIMES = st.lists(st.integers(0, 1 << 44), min_size=2, max_size=50)


@given(TIMES, st.integers(0))
def test_ids_grow_even_when_the_clock_goes_back(times: list[int], seed: int) -> None:
    ids = JobIds(random.Random(seed).getrandbits)
    made = [ids.next(time) for time in times for _ in range(3)]
    assert made == sorted(set(made)) and {len(one) for one in made} == {13}


def test_a_millisecond_that_is_used_up_borrows_from_the_next() -> None:
    ids = JobIds(lambda bits: (1 << bits) - 1)
    made = [ids.next(7) for _ in range(10_000)]
    assert made == sorted(set(made)) and made[0] < job_id(8, 0) < made[-1]


def test_attempt_ids_parse_back() -> None:
    key = parse_attempt_id(attempt_id(job_id(1, 2), 3, "worker", 4, 5))
    assert (key.job, key.job_attempt, str(key.task), key.task_attempt) == (job_id(1, 2), 3, "worker-4", 5)
    with pytest.raises(ValueError, match="JOBATTEMPT"):
        parse_attempt_id("a.b")
