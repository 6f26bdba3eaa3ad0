"""Who shares compiled code: the word of a job, else of the nearest queue that has one, else of the server."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from corral.model.compile_caches import CacheTerms, cache_terms
from corral.model.queue_ancestors import cache_default, upwards


@pytest.mark.parametrize(
    ("own", "of_queue", "of_server", "terms"),
    [
        ("default", None, "none", CacheTerms("none", "server")),
        ("default", None, "user", CacheTerms("user", "server")),
        ("default", ("job", "vision"), "user", CacheTerms("job", "queue", "vision")),
        ("default", ("none", "vision"), "user", CacheTerms("none", "queue", "vision")),
        ("default", ("user", "company"), "none", CacheTerms("user", "queue", "company")),
        ("none", ("user", "vision"), "user", CacheTerms("none", "job")),
        ("job", ("user", "vision"), "user", CacheTerms("job", "job")),
        ("user", ("none", "vision"), "none", CacheTerms("user", "job")),
        ("group", ("none", "vision"), "none", CacheTerms("group", "job")),
        ("default", ("group", "vision"), "user", CacheTerms("none", "queue", "vision")),
        ("default", None, "group", CacheTerms("none", "server")),
    ],
)
def test_the_nearest_word_counts_and_no_default_shares_with_a_group(
    own: str, of_queue: tuple[str, str] | None, of_server: str, terms: CacheTerms
) -> None:
    assert cache_terms(own, of_queue, of_server) == terms


class Queue(NamedTuple):
    """What the rule reads of a queue."""

    parent: str = ""
    compile_cache: str | None = None


QUEUES = {
    "company": Queue(compile_cache="user"),
    "vision": Queue("company"),
    "lean": Queue("company", "none"),
    "alone": Queue("lean"),
    "plain": Queue(),
    "orphan": Queue("gone"),
    "one": Queue("other"),
    "other": Queue("one"),
}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("company", ("user", "company")),
        ("vision", ("user", "company")),
        ("lean", ("none", "lean")),
        ("alone", ("none", "lean")),
        ("plain", None),
        ("orphan", None),
        ("one", None),
        ("absent", None),
    ],
)
def test_the_default_of_the_nearest_queue_above_holds(name: str, said: tuple[str, str] | None) -> None:
    assert cache_default(QUEUES, name) == said


def test_ancestors_come_from_the_queue_upwards_and_a_circle_ends() -> None:
    assert [above for above, _ in upwards(QUEUES, "alone")] == ["alone", "lean", "company"]
    assert len(list(upwards(QUEUES, "one"))) == 100
