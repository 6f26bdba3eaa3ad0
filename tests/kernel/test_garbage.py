"""Garbage collection pauses while a large structure is built, and resumes afterwards even after an error."""

from __future__ import annotations

import gc

import pytest

from corral.kernel.garbage import rarely_collected, uncollected


def test_it_is_off_inside_and_on_again_after_an_error() -> None:
    assert gc.isenabled()
    with pytest.raises(ValueError, match="half built"), uncollected():
        assert not gc.isenabled()
        raise ValueError("half built")
    assert gc.isenabled()


def test_who_has_it_off_keeps_it_off() -> None:
    with uncollected():
        with uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_is_rare_inside_and_as_before_after_an_error() -> None:
    before = gc.get_threshold()
    with pytest.raises(ValueError, match="half played"), rarely_collected():
        assert gc.get_threshold() == (100 * before[0], *before[1:])
        raise ValueError("half played")
    assert gc.get_threshold() == before
