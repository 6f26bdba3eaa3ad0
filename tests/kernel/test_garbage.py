"""Garbage collection pauses while a large structure is built, and resumes afterwards even after an error."""

from __future__ import annotations

import gc

import pytest

from corral.kernel.garbage import uncollected


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
