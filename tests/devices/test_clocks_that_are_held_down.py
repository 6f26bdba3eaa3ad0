"""Why the clocks of AMD's GPUs and Ascend's NPUs are held down is read from the driver's table and Huawei's tool."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.devices.figures.amd import AmdReader
from corral.devices.figures.device_figures import DeviceFigures, Held
from corral.devices.figures.gpu_metrics import HeldDownSince, Residencies, parse_gpu_metrics
from corral.devices.figures.npu_smi import Details, NpuDetails, parse_details

RECORDED: Final = Path(__file__).parent / "recorded"
SIZES: Final = {3: 120, 6: 1664, 7: 2208, 8: 3360}
"""Bytes of the driver's tables by content revision."""
TEMP_HOTSPOT, VRHOT0, PROCHOT_GFX, PPT0, TDC_GFX, FIT = 36, 44, 47, 0, 16, 57


def with_status(status: int) -> bytes:
    """`gpu_metrics_v1_3` of an MI210: all else is unknown."""
    table = bytearray(b"\xff" * SIZES[3])
    struct.pack_into("<HBB", table, 0, SIZES[3], 1, 3)
    struct.pack_into("<Q", table, 112, status)
    return bytes(table)


def with_residencies(revision: int, *counts: int) -> bytes:
    """A table of an MI300: cycles, then those of PROCHOT, package power, socket, voltage regulators and memory."""
    table = bytearray(SIZES[revision])
    struct.pack_into("<HBB", table, 0, SIZES[revision], 1, revision)
    struct.pack_into("<6I", table, {6: 32, 7: 40, 8: 40}[revision], *counts)
    return bytes(table)


def with_attributes(*counts: int) -> bytes:
    """`gpu_metrics_v1_9`: attributes of several types and counts, among them those of the residencies."""

    def attribute(number: int, kind: int, form: str, *values: int) -> bytes:
        return struct.pack(f"<Q{len(values)}{form}", kind << 20 | number << 10 | len(values), *values)

    first = [attribute(0, 2, "H", 61), attribute(7, 6, "Q", 4711), attribute(29, 6, "Q", *range(8))]
    held = [attribute(9 + at, 6 if at else 4, "Q" if at else "I", count) for at, count in enumerate(counts)]
    body = b"".join([*first, *held, attribute(33, 2, "H", *range(8))])
    return struct.pack("<HBBi", len(body) + 8, 1, 9, len(first) + len(held) + 1) + body


def test_a_list_of_attributes_is_read_like_a_table() -> None:
    assert parse_gpu_metrics(with_attributes(1000, 10, 20, 30, 40, 50)) == Residencies(1000, 10, 20, (30, 40, 50))
    since = HeldDownSince()
    since.told("card0", with_attributes(1000, 10, 20, 30, 40, 50))
    assert since.told("card0", with_attributes(2000, 10, 20, 30, 540, 50)) == (
        (Held.HEAT, 0.5), (Held.PROCHOT, 0.0), (Held.POWER, 0.0),
    )  # fmt: skip
    whole = with_attributes(1000, 10, 20, 30, 40, 50)
    for cut in (8, 20, 60, 150):
        assert parse_gpu_metrics(struct.pack("<H", cut) + whole[2:cut]) is None
    assert parse_gpu_metrics(with_attributes(1000, 10, 20)) is None
    assert parse_gpu_metrics(with_attributes(1000, 2**64 - 1, 20, 30, 40, 50)) is None
    assert parse_gpu_metrics(whole[:18] + b"\xff" * 8 + whole[26:]) is None, "no such type"


@pytest.mark.parametrize(
    ("bits", "reasons"),
    [
        ((), set()),
        ((TEMP_HOTSPOT, PPT0), {Held.HEAT, Held.POWER}),
        ((VRHOT0,), {Held.HEAT}),
        ((PROCHOT_GFX, TDC_GFX), {Held.PROCHOT, Held.CURRENT}),
        ((FIT,), set()),
    ],
)
def test_the_bits_of_a_table_are_reasons(bits: Sequence[int], reasons: set[Held]) -> None:
    found = parse_gpu_metrics(with_status(sum(1 << bit for bit in bits)))
    assert isinstance(found, tuple) and not isinstance(found, Residencies)
    assert {reason for reason, part in found if part} == reasons
    assert {reason for reason, _ in found} == {Held.HEAT, Held.PROCHOT, Held.POWER, Held.CURRENT}


@pytest.mark.parametrize("revision", [6, 7, 8])
def test_counts_of_cycles_become_parts_of_the_time_between_two_looks(revision: int) -> None:
    since = HeldDownSince()
    assert since.told("card0", with_residencies(revision, 1000, 10, 20, 30, 40, 50)) is None, "the first look"
    found = since.told("card0", with_residencies(revision, 3000, 10, 1020, 530, 40, 150))
    assert found == ((Held.HEAT, 0.25), (Held.PROCHOT, 0.0), (Held.POWER, 0.5))
    again = since.told("card0", with_residencies(revision, 3000, 10, 1020, 530, 40, 150))
    assert again == found, "the driver has measured nothing since"
    assert since.told("card0", with_residencies(revision, 5, 0, 0, 0, 0, 0)) is None, "it was loaded anew"
    assert since.told("card0", with_residencies(revision, 15, 10, 0, 0, 0, 0)) == (
        (Held.HEAT, 0.0), (Held.PROCHOT, 1.0), (Held.POWER, 0.0),
    )  # fmt: skip
    assert since.told("card1", with_residencies(revision, 99, 0, 0, 0, 0, 0)) is None, "another card"


def test_a_table_that_tells_nothing_of_clocks_gives_no_figures() -> None:
    v1_3, v1_6 = with_status(1), with_residencies(6, 1, 0, 0, 0, 0, 0)
    unknown = with_residencies(6, 2**32 - 1, 0, 0, 0, 0, 0)
    other = [bytes((*v1_3[:2], 2, *v1_3[3:])), bytes((*v1_3[:3], 1, *v1_3[4:])), bytes((*v1_6[:3], 9, *v1_6[4:]))]
    for table in (b"", v1_3[:100], v1_6[:40], with_status(2**64 - 1), unknown, *other):
        assert parse_gpu_metrics(table) is None, table[:4]


@given(st.binary(max_size=200), st.sampled_from([3, 6, 7, 8, 9]))
def test_any_table_is_read_or_passed_over(text: bytes, revision: int) -> None:
    since = HeldDownSince()
    for table in (text, struct.pack("<HBB", len(text) + 4, 1, revision) + text):
        for reason, part in since.told("card0", table) or ():
            assert reason in Held and 0 <= part <= 1


def test_a_cards_table_is_read_beside_its_other_files(tmp_path: Path) -> None:
    card = tmp_path / "card0" / "device"
    card.mkdir(parents=True)
    (card / "vendor").write_text("0x1002\n")
    reader = AmdReader(tmp_path)
    (card / "gpu_metrics").write_bytes(with_status(1 << TEMP_HOTSPOT))
    assert dict(reader.read()[0].held_down or ())[Held.HEAT] == 1.0
    (card / "gpu_metrics").write_bytes(with_residencies(6, 1000, 0, 0, 0, 0, 0))
    assert reader.read()[0].held_down is None
    (card / "gpu_metrics").write_bytes(with_residencies(6, 2000, 0, 0, 0, 900, 0))
    assert dict(reader.read()[0].held_down or ())[Held.HEAT] == 0.9
    (card / "gpu_metrics").unlink()
    assert reader.read()[0].held_down is None


COMMON: Final = (RECORDED / "npu-smi-common.txt").read_bytes()
PCIE: Final = (RECORDED / "npu-smi-pcie-err.txt").read_bytes()
ECC: Final = (RECORDED / "npu-smi-ecc.txt").read_bytes()


def test_the_details_of_a_chip_are_read() -> None:
    assert parse_details(COMMON, PCIE, ECC, 0) == Details(1800, ((Held.UNKNOWN, 0.0),), 415, 3, 1)
    assert parse_details(b"", b"", b"", 0) == Details()
    assert parse_details(b"This device does not support querying.\n", b"\xff:\0", b":::", 0) == Details()


@pytest.mark.parametrize(
    ("use", "clock", "held"), [(95, 1300, 1.0), (95, 1400, 0.0), (79, 800, 0.0), (0, 800, 0.0), (80, 0, 1.0)]
)
def test_an_npu_is_held_down_when_it_computes_far_below_its_rated_clock(use: int, clock: int, held: float) -> None:
    used, clocked = b"Aicore Usage Rate(%)           : 92", b"curFreq(MHZ)            : 1800"
    assert used in COMMON and clocked in COMMON
    text = COMMON.replace(used, f"Aicore Usage Rate(%) : {use}".encode())
    text = text.replace(clocked, f"curFreq(MHZ) : {clock}".encode())
    found = parse_details(text, b"", b"", 0)
    assert (found.clock, found.held_down) == (clock, ((Held.UNKNOWN, held),))


def test_the_section_of_another_chip_or_of_the_boards_controller_is_passed_over() -> None:
    two = COMMON.partition(b"    Chip Name")[0] + (
        b"    Chip ID                        : 1\n    Aicore Usage Rate(%)           : 90\n"
        b"    Aicore Freq(MHZ)               : 1800\n    Aicore curFreq(MHZ)            : 900\n"
    )
    assert parse_details(two, b"", b"", 0).clock == 1800
    assert parse_details(two, b"", b"", 1) == Details(900, ((Held.UNKNOWN, 1.0),))
    assert parse_details(COMMON, b"", b"", 7) == Details()


class Tool:
    """Answers for npu-smi, and notes of which chips it was asked."""

    def __init__(self) -> None:
        self.now, self.takes, self.fails = 0.0, 0.1, False
        self.asked: list[str] = []

    def run(self, words: Sequence[str], *, seconds: float) -> bytes:
        assert words[:3] == ["npu-smi", "info", "-t"] and 0 < seconds < 5.001
        if self.fails or self.takes > seconds:
            self.now += seconds
            raise subprocess.TimeoutExpired(words, seconds)
        self.now += self.takes
        self.asked.append(" ".join(words[3:]))
        return {"common": COMMON, "pcie-err": PCIE, "ecc": ECC}[words[3]]


def table(chips: int) -> bytes:
    """The table of a machine with so many chips of 910B3."""
    head, row = "| npu-smi 23.0 |", "| {0} 910B3 | OK | 93.3 40 0 / 0 |\n| 0 | 0000:C{0}:00.0 | 87 0 / 0 33412/ 65536 |"
    return "\n".join([head, *(row.format(number) for number in range(chips))]).encode()


def test_a_few_chips_are_asked_at_a_time_and_each_in_turn() -> None:
    tool = Tool()
    details = NpuDetails(tool.run, monotonic=lambda: tool.now)
    known = []
    for _ in range(4):
        known.append([each.index for each in details.figures(table(5)) if each.pcie_replays == 415])
    assert known == [[0, 1], [0, 1, 2, 3], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]
    assert tool.asked[:3] == ["common -i 0", "pcie-err -i 0 -c 0", "ecc -i 0 -c 0"]
    assert len(tool.asked) == 4 * 2 * 3
    assert [each.index for each in details.figures(table(2)) if each.clock] == [0, 1], (
        "a chip that is gone is forgotten"
    )


def test_a_chip_that_hangs_costs_a_few_seconds_and_its_details_alone() -> None:
    tool = Tool()
    details = NpuDetails(tool.run, monotonic=lambda: tool.now)
    details.figures(table(2))
    tool.takes, before = 60.0, tool.now
    first, second = details.figures(table(2))
    assert tool.now - before < 5.001 and (first.use, first.clock, second.pcie_replays) == (87, None, 415)
    tool.takes = 0.1
    assert [each.clock for each in details.figures(table(2))] == [1800, 1800]


@pytest.mark.parametrize("takes", [1.0, 2.0])
def test_all_details_of_all_chips_are_known_in_time_where_the_tool_is_slow(
    takes: float, caplog: pytest.LogCaptureFixture
) -> None:
    tool = Tool()
    tool.takes = takes
    details = NpuDetails(tool.run, monotonic=lambda: tool.now)
    found: tuple[DeviceFigures, ...] = ()
    for _ in range(6):
        begun = tool.now
        found = details.figures(table(4))
        assert tool.now - begun < 5.001
    assert [(each.clock, each.pcie_replays, each.ecc_corrected) for each in found] == 4 * [(1800, 415, 3)]
    assert len(tool.asked) == 24 / takes and len(set(tool.asked)) == 12, "each in turn"
    (line,) = caplog.records
    assert "of 6 questions within 5 s" in line.getMessage()
    for _ in range(6):
        assert all(each.clock and each.ecc_corrected == 3 for each in details.figures(table(4))), "none is forgotten"


def test_a_run_that_had_little_time_is_repeated_with_all_of_it() -> None:
    tool = Tool()
    details = NpuDetails(tool.run, monotonic=lambda: tool.now)
    details.figures(table(1))

    def slow_once(words: Sequence[str], *, seconds: float) -> bytes:
        tool.takes = 4.5 if words[3] == "pcie-err" else 1.0
        return tool.run(words, seconds=seconds)

    details._run = slow_once
    (first,) = details.figures(table(1))
    assert first.pcie_replays == 415, "what was known stays"
    before = len(tool.asked)
    details.figures(table(1))
    assert tool.asked[before].startswith("pcie-err")


def test_whether_clocks_are_held_down_is_forgotten_after_five_minutes() -> None:
    tool = Tool()
    details = NpuDetails(tool.run, monotonic=lambda: tool.now)
    details.figures(table(40))
    tool.now += 290.0
    assert details.figures(table(40))[0].held_down is not None
    tool.now += 20.0
    first = details.figures(table(40))[0]
    assert (first.held_down, first.pcie_replays) == (None, 415)


def test_what_is_no_table_is_refused_and_no_chip_is_asked() -> None:
    tool = Tool()
    with pytest.raises(ValueError, match="no table of NPUs"):
        NpuDetails(tool.run, monotonic=lambda: tool.now).figures(b"dcmi module initialize failed")
    assert tool.asked == []
