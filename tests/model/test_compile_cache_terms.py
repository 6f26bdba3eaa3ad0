"""Who shares compiled code: the word of a job, else of the nearest queue that has one, else of the server."""

from __future__ import annotations

import pytest

from corral.model.compile_caches import CacheTerms, cache_terms


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
