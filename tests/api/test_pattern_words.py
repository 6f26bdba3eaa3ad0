"""Patterns of parameters and fields are told in words."""

from __future__ import annotations

import pytest

from corral.api.pattern_words import refused_field, words_of


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("^(admin|user)$", "one of admin, user"),
        ("^[0-9a-f]{64}$", "64 hexadecimal digits"),
        ("^[A-Za-z]{1,40}$", "letters, 40 characters at most"),
        ("^[a-z0-9][a-z0-9-]{0,62}$",
         "lower-case letters, digits and '-', beginning with a letter or digit, 63 characters at most"),
        ("^[a-z.][a-z.@]{0,125}$",
         "lower-case letters, '.' and '@', beginning with lower-case letters and '.', 126 characters at most"),
        (r"^\?[01]$", r"text of the form ^\?[01]$"),
    ],
)  # fmt: skip
def test_a_pattern_is_told_in_words(pattern: str, words: str) -> None:
    assert words_of(pattern) == words


def test_only_refusals_by_a_pattern_are_translated() -> None:
    assert refused_field("Expected `str` matching regex '^(a|b)$'") == "The body does not fit; expected one of a, b."
    assert refused_field("Expected `int`, got `str` - at `$.replicas`") is None
