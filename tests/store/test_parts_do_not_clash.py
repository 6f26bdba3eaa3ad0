"""The mixin classes of the store do not override each other's names by accident."""

from __future__ import annotations

from itertools import combinations

from corral.store import Store


def test_no_part_overrides_what_a_stranger_defines() -> None:
    parts = [part for part in Store.__mro__ if part.__module__.startswith("corral.")]
    assert len(parts) > 1
    clashes = [
        f"{first.__name__} and {second.__name__}: {name}"
        for first, second in combinations(parts, 2)
        if not issubclass(first, second)
        for name in first.__dict__.keys() & second.__dict__.keys()
        if not name.startswith("__") and callable(getattr(second, name))
    ]
    assert clashes == []
