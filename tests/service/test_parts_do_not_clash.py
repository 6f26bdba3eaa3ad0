"""The mixin classes of the service and the store do not override each other's names by accident."""

from __future__ import annotations

from itertools import combinations

import pytest

from corral.service.service import Service
from corral.store import Store


@pytest.mark.parametrize("whole", [Service, Store], ids=lambda whole: whole.__name__)
def test_no_part_overrides_what_a_stranger_defines(whole: type) -> None:
    parts = [part for part in whole.__mro__ if part.__module__.startswith("corral.")]
    assert len(parts) > 1
    clashes = [
        f"{first.__name__} and {second.__name__}: {name}"
        for first, second in combinations(parts, 2)
        if not issubclass(first, second)
        for name in first.__dict__.keys() & second.__dict__.keys()
        if not name.startswith("__") and callable(getattr(second, name))
    ]
    assert clashes == []
