"""Recorded output of the vendors' tools is read, and broken output refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.devices.figures.amd import AmdReader, parse_rocm_smi
from corral.devices.figures.device_figures import DeviceFigures
from corral.devices.figures.npu_smi import parse_npu_smi
from corral.devices.figures.nvidia_smi import parse_nvidia_smi

RECORDED: Final = Path(__file__).parent / "recorded"
NO_FIGURES: Final = {
    "supported-clocks-a100.csv", "dcgm-exporter-3.txt", "amd-exporter-1.txt", "npu-smi-common.txt",
    "npu-smi-pcie-err.txt", "npu-smi-ecc.txt", "aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal",
}  # fmt: skip
"""Recordings of other things, which their own tests read."""
MIB: Final = 2**20
READ: Final[dict[str, tuple[Any, list[DeviceFigures]]]] = {
    "nvidia-smi-535.xml": (
        parse_nvidia_smi,
        [
            DeviceFigures(
                "nvidia", 0, "GPU-5a1b2c3d-0001-4e5f-8a9b-000000000001", "NVIDIA A100-SXM4-80GB", 0,
                "00000000:07:00.0", use=98, memory_use=61, encoder_use=0, decoder_use=0, memory_used=40960 * MIB,
                memory_total=81920 * MIB, temperature=64, memory_temperature=71, power=388.12, clock=1410,
                memory_clock=1593, pcie_replays=3, ecc_corrected=5, ecc_uncorrected=2, remapped_corrected=1,
                remapped_uncorrected=2, remap_failed=True, state=0,
                throttled=("clocks_throttle_reason_sw_power_cap", "clocks_throttle_reason_sw_thermal_slowdown"),
                processes=(4711,),
            ),
            DeviceFigures(
                "nvidia", 1, "GPU-5a1b2c3d-0002-4e5f-8a9b-000000000002", "NVIDIA A100-SXM4-80GB", 1,
                "00000000:0F:00.0", use=0, memory_use=0, memory_used=4 * MIB, memory_total=81920 * MIB, temperature=31,
                ecc_corrected=0, ecc_uncorrected=0, state=0, processes=(),
            ),
        ],
    ),
    "nvidia-smi-418.xml": (
        parse_nvidia_smi,
        [
            DeviceFigures(
                "nvidia", 0, "GPU-0f0e0d0c-1111-2222-3333-444455556666", "Tesla V100-PCIE-16GB", 3,
                "00000000:3B:00.0", memory_used=0, memory_total=16130 * MIB, temperature=33, power=25.11,
                ecc_corrected=2, ecc_uncorrected=1, state=2, throttled=("clocks_throttle_reason_gpu_idle",),
                processes=(),
            )
        ],
    ),
    "rocm-smi-5.json": (
        parse_rocm_smi,
        [
            DeviceFigures(
                "amd", 0, "AMD-5e4d3c2b1a0f9e8d", "AMD INSTINCT MI250X", bus="0000:C1:00.0", use=97, memory_use=38,
                memory_used=34351349760, memory_total=68702699520, temperature=41, memory_temperature=52, power=310,
            ),
            DeviceFigures(
                "amd", 1, "AMD-1", "AMD INSTINCT MI250X", bus="0000:C6:00.0", use=0, memory_used=10960896,
                memory_total=68702699520, temperature=38,
            ),
        ],
    ),
    "rocm-smi-6.json": (
        parse_rocm_smi,
        [
            DeviceFigures(
                "amd", 0, "AMD-9f8e7d6c5b4a3921", "AMD Instinct MI300X", bus="0000:05:00.0", use=12, memory_use=3,
                memory_used=297070592, memory_total=206141652992, temperature=44, memory_temperature=37, power=141,
            )
        ],
    ),
    "npu-smi-910b.txt": (
        parse_npu_smi,
        [
            DeviceFigures(
                "ascend", 0, "davinci0", "Ascend 910B3", bus="0000:C1:00.0", use=87, memory_used=33412 * MIB,
                memory_total=65536 * MIB, temperature=40, power=93.3,
            ),
            DeviceFigures(
                "ascend", 1, "davinci1", "Ascend 910B3", bus="0000:C2:00.0", use=0, memory_used=3341 * MIB,
                memory_total=65536 * MIB, temperature=38,
            ),
        ],
    ),
    "npu-smi-310p.txt": (
        parse_npu_smi,
        [
            DeviceFigures(
                "ascend", 0, "davinci0", "Ascend 310P3", bus="0000:01:00.0", use=13, memory_used=1855 * MIB,
                memory_total=21527 * MIB, temperature=51,
            ),
            DeviceFigures(
                "ascend", 1, "davinci1", "Ascend 310P3", bus="0000:01:00.0", use=0, memory_used=1412 * MIB,
                memory_total=21527 * MIB, temperature=50,
            ),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_a_recording_is_read(name: str) -> None:
    parse, wanted = READ[name]
    assert list(parse((RECORDED / name).read_bytes())) == wanted


def test_every_recording_is_read() -> None:
    assert {path.name for path in RECORDED.iterdir()} - {"README.md", *NO_FIGURES} == READ.keys()


@pytest.mark.parametrize("name", READ)
@given(cut=st.floats(0, 1), at=st.floats(0, 1), byte=st.integers(0, 255))
def test_a_damaged_recording_is_read_or_refused(name: str, cut: float, at: float, byte: int) -> None:
    parse, _ = READ[name]
    text = bytearray((RECORDED / name).read_bytes())
    text[int(at * (len(text) - 1))] = byte
    for damaged in (bytes(text), bytes(text[: int(cut * len(text))])):
        try:
            found = parse(damaged)
        except ValueError:
            continue
        assert len(found) <= 2


@pytest.mark.parametrize("parse", [parse_nvidia_smi, parse_rocm_smi, parse_npu_smi])
def test_a_document_that_is_too_long_is_refused(parse: Any) -> None:
    with pytest.raises(ValueError, match="more than"):
        parse(b" " * (4 * MIB + 1))


def test_entities_are_refused() -> None:
    text = b'<!DOCTYPE a [<!ENTITY b "c">]><nvidia_smi_log>&b;</nvidia_smi_log>'
    with pytest.raises(ValueError, match="declares entities"):
        parse_nvidia_smi(text)


def test_the_kernels_files_of_an_amd_card_are_read(tmp_path: Path) -> None:
    for name, vendor in (("card0", "0x8086"), ("card1", "0x1002"), ("card10", "0x1002")):
        card = tmp_path / name / "device"
        (card / "hwmon" / "hwmon3").mkdir(parents=True)
        (card / "vendor").write_text(f"{vendor}\n")
    (tmp_path / "renderD128").mkdir()
    card = tmp_path / "card1" / "device"
    files = {
        "gpu_busy_percent": "73", "mem_busy_percent": "20", "mem_info_vram_used": "1073741824",
        "mem_info_vram_total": "68702699520", "unique_id": "5e4d3c2b1a0f9e8d", "pcie_replay_count": "2",
        "product_name": "MI210", "hwmon/hwmon3/temp1_input": "45000", "hwmon/hwmon3/temp3_input": "50000",
        "hwmon/hwmon3/power1_average": "211000000", "hwmon/hwmon3/freq1_input": "1700000000",
        "hwmon/hwmon3/freq2_input": "1600000000", "ras/umc_err_count": "ue: 1\nce: 7",
    }  # fmt: skip
    for name, text in files.items():
        (card / name).parent.mkdir(exist_ok=True)
        (card / name).write_text(text + "\n")
    first, second = AmdReader(tmp_path).read()
    assert first == DeviceFigures(
        "amd", 0, "AMD-5e4d3c2b1a0f9e8d", "MI210", bus="device", use=73, memory_use=20, memory_used=2**30,
        memory_total=68702699520, temperature=45, memory_temperature=50, power=211, clock=1700, memory_clock=1600,
        pcie_replays=2, ecc_corrected=7, ecc_uncorrected=1,
    )  # fmt: skip
    assert second.use is None and second.id == "AMD-1"
    assert AmdReader(tmp_path / "none").read() == ()
