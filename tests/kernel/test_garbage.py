"""Garbage collection pauses while a large structure is built, and resumes afterwards even after an error."""

from __future__ import annotations

import gc

import pytest

from corral.kernel.garbage import collect_rarely, give_back, rarely_collected, uncollected


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


def test_a_block_within_another_one_changes_nothing() -> None:
    youngest = gc.get_threshold()[0]
    with rarely_collected():
        with rarely_collected():
            assert gc.get_threshold()[0] == 100 * youngest
        assert gc.get_threshold()[0] == 100 * youngest
    assert gc.get_threshold()[0] == youngest


def test_a_start_collects_rarely_until_it_gives_back() -> None:
    usual = gc.get_threshold()
    try:
        for _ in range(2):
            collect_rarely()
            assert gc.get_threshold() == (100 * usual[0], *usual[1:])
        give_back()
        assert gc.get_threshold() == usual and gc.isenabled()
    finally:
        gc.set_threshold(*usual)
