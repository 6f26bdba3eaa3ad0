"""The figures of NVIDIA GPUs are read through NVML, as far as each board has them."""

from __future__ import annotations

import pytest

from corral.devices.figures.device_figures import DeviceFigures
from corral.devices.figures.nvml import NvmlReader
from tests.devices.measured_nvml import Measured, MeasuredNvml


def busy(**fields: object) -> Measured:
    return Measured("00000000:07:00.0", "GPU-1", **fields)  # type: ignore[arg-type]


def test_all_figures_of_a_board_are_read() -> None:
    board = busy(use=90, used=30 << 30, watts=388.5, celsius=64, ecc=2, throttled=0x24, pids=[7, 9], remap_failed=1)
    assert NvmlReader(MeasuredNvml([board])).read() == (
        DeviceFigures(
            "nvidia", 0, "GPU-1", "NVIDIA A100-SXM4-40GB", 0, "00000000:07:00.0", use=90, memory_use=45, decoder_use=5,
            memory_used=30 << 30, memory_total=40 << 30, temperature=64, memory_temperature=55, power=388.5, clock=1410,
            memory_clock=1593, energy=123_456_789, pcie_replays=4, ecc_corrected=20, ecc_uncorrected=2, xid=0,
            remapped_corrected=1, remapped_uncorrected=2, remap_failed=True, nvlink_kib=277_000, state=0,
            throttled=("clocks_throttle_reason_sw_power_cap", "clocks_throttle_reason_sw_thermal_slowdown"),
            processes=(7, 9),
        ),
    )  # fmt: skip


def test_the_last_xid_error_of_a_board_is_kept() -> None:
    board, other = busy(), Measured("00000000:0f:00.0", "GPU-2")
    reader = NvmlReader(MeasuredNvml([board, other]))
    assert [each.xid for each in reader.read()] == [0, 0]
    board.xids = [13, 79]
    assert [each.xid for each in reader.read()] == [79, 0]
    assert [each.xid for each in reader.read()] == [79, 0]


def test_a_board_that_supports_nothing_has_no_figures_and_is_opened_again() -> None:
    library = MeasuredNvml([busy(deaf=True, lost=True)])
    reader = NvmlReader(library)
    (found,) = reader.read()
    assert found.use is None and found.memory_percent is None and found.processes is None and found.id == ""
    assert library.open == 0  # given back, since the driver may have been loaded again
    library.boards[0].deaf = library.boards[0].lost = False
    assert [(each.use, each.id) for each in reader.read()] == [(0, "GPU-1")] and library.open == 1
    reader.close()
    assert library.open == 0


def test_a_board_that_was_lost_before_has_no_figures_and_the_others_have_theirs() -> None:
    lost, good = Measured("", "GPU-0", refused=MeasuredNvml.NVML_ERROR_GPU_IS_LOST), Measured("", "GPU-1", use=40)
    first, second = NvmlReader(MeasuredNvml([lost, good])).read()
    assert (first.index, first.id, first.use, first.memory_used) == (0, "", None, None)
    assert (second.index, second.id, second.use) == (1, "GPU-1", 40.0)


def test_a_driver_that_is_gone_raises_until_it_is_back() -> None:
    library = MeasuredNvml([busy()])
    reader, library.driver = NvmlReader(library), False
    with pytest.raises(library.NVMLError):
        reader.read()
    library.driver = True
    assert len(reader.read()) == 1
