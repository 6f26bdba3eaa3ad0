"""Quantities (memory, processors, durations) parse to the same amount in every notation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.kernel import units


@pytest.mark.parametrize(
    ("text", "millis"),
    [("2", 2000), ("0.5", 500), (".5", 500), ("500m", 500), ("0", 0), ("0.125", 125), ("1.000", 1000)],
)
def test_processors_are_read(text: str, millis: int) -> None:
    assert units.parse_cpu(text) == millis


@pytest.mark.parametrize("text", ["", "-1", "0.0001", "1k", "1 ", "1e3", "½", "٣", "0x1", "12345678m"])
def test_what_is_no_amount_of_processors_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="processor"):
        units.parse_cpu(text)


@pytest.mark.parametrize(("text", "millis"), [("2", 2000), ("0.5", 500), (".125", 125), ("0", 0), ("1.000", 1000)])
def test_devices_are_read(text: str, millis: int) -> None:
    assert units.parse_devices(text) == millis


@pytest.mark.parametrize("text", ["", "-1", "0.0001", "1k", "500m", "1 ", "1e3", "½", "٣", "9" * 13])
def test_what_is_no_number_of_devices_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="device"):
        units.parse_devices(text)


@given(st.integers(0, 10**12))
def test_devices_are_written_exactly(millis: int) -> None:
    assert units.parse_devices(units.format_devices(millis)) == millis
    shown = units.devices(millis)
    assert isinstance(shown, int) == (millis % 1000 == 0)
    assert round(shown * units.DEVICE) == millis


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2Gi", 2**31),
        ("2G", 2_000_000_000),
        ("2GB", 2_000_000_000),
        ("2GiB", 2**31),
        ("1.5Gi", 3 * 2**29),
        ("64k", 64_000),
        ("64Ki", 65_536),
        ("1048576", 2**20),
        ("0", 0),
        ("7Ei", 7 * 2**60),
    ],
)
def test_memory_is_read(text: str, size: int) -> None:
    assert units.parse_memory(text) == size


@pytest.mark.parametrize("text", ["", "Gi", "-1Gi", "2 Gi", "2gi", "2GI", "8Ei", "9" * 30, "5b", "1e9", "٣Gi"])
def test_what_is_no_memory_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="memory"):
        units.parse_memory(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("30m", 1800), ("2h", 7200), ("1h30m", 5400), ("2d", 172_800), ("0", 0), ("0s", 0)],
)
def test_durations_are_read(text: str, seconds: int) -> None:
    assert units.parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "1m1h", "2 h", "-1s", "1.5h", "1w", "12:30"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        units.parse_duration(text)


@given(st.integers(0, 2**63 - 1))
def test_memory_is_written_as_it_is_read(size: int) -> None:
    assert units.parse_memory(units.format_memory(size)) == size


@given(st.integers(0, 9_999_999))
def test_processors_are_written_as_they_are_read(millis: int) -> None:
    assert units.parse_cpu(units.format_cpu(millis)) == millis


@given(st.integers(0, 10**9))
def test_durations_are_written_as_they_are_read(seconds: int) -> None:
    assert units.parse_duration(units.format_duration(seconds)) == seconds
