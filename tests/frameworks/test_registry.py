"""Frameworks are found by the document's `jobType`; an unknown one is refused with the nearest name."""

from __future__ import annotations

import pytest

from corral.frameworks import framework, job_types
from corral.kernel.errors import InvalidInput


def test_every_known_type_answers_to_its_own_name() -> None:
    for name in job_types():
        assert framework(name).job_type == name


def test_an_unknown_type_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InvalidInput, match='no framework is called "pytroch"; did you mean "pytorch"') as refusal:
        framework("pytroch")
    assert refusal.value.code == "unknown-job-type"
