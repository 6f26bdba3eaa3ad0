"""Errors on PCI Express are read from the kernel's files by a device's address, whoever made it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.devices.figures.device_figures import DeviceFigures
from corral.devices.figures.npu_smi import parse_npu_smi
from corral.devices.figures.pcie_errors import pcie_errors
from corral.model.metrics.device_families import DeviceMetric
from corral.monitor.agent.device_samples import device_values

RECORDED: Final = Path(__file__).parent / "recorded"


@pytest.fixture
def pci(tmp_path: Path) -> Path:
    folder = tmp_path / "0000:c1:00.0"
    folder.mkdir()
    for name in ("aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal"):
        shutil.copy(RECORDED / name, folder)
    return tmp_path


@pytest.mark.parametrize("address", ["0000:C1:00.0", "00000000:c1:00.0", "0000:c1:00.0"])
def test_the_kernels_counts_are_read_by_severity(pci: Path, address: str) -> None:
    assert pcie_errors(address, pci) == {"correctable": 12, "nonfatal": 3, "fatal": 0}


@pytest.mark.parametrize(
    "address", ["", "0000:c2:00.0", "C1:00.0", "device", "../0000:c1:00.0", "0000:c1:00.0/..", "NA"]
)
def test_another_address_has_none(pci: Path, address: str) -> None:
    assert pcie_errors(address, pci) == {}


def test_a_kernel_without_a_file_or_a_total_tells_the_others(pci: Path) -> None:
    (pci / "0000:c1:00.0/aer_dev_fatal").unlink()
    (pci / "0000:c1:00.0/aer_dev_nonfatal").write_text("DLP 0\nTOTAL_ERR_NONFATAL many\n")
    assert pcie_errors("0000:c1:00.0", pci) == {"correctable": 12}


@given(text=st.binary(max_size=200))
def test_any_bytes_are_read_or_passed_over(tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
    folder = tmp_path_factory.getbasetemp() / "any" / "0000:c1:00.0"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "aer_dev_correctable").write_bytes(text)
    assert set(pcie_errors("0000:c1:00.0", folder.parent)) <= {"correctable"}


def test_the_errors_of_ascends_npus_are_told_by_the_address_of_their_tool(pci: Path) -> None:
    first, second = parse_npu_smi((RECORDED / "npu-smi-910b.txt").read_bytes())
    told = {
        each.labels[4]: each.value
        for each in device_values(first, "n1", pci)
        if each.family == DeviceMetric.PCIE_ERRORS
    }
    assert told == {"correctable": 12, "nonfatal": 3, "fatal": 0}
    assert not any(each.family == DeviceMetric.PCIE_ERRORS for each in device_values(second, "n1", pci))


def test_what_other_vendors_devices_count_has_names_of_its_own(pci: Path) -> None:
    npu = DeviceFigures(
        "ascend", 3, "davinci3", "Ascend 910B3", clock=1800, pcie_replays=4, ecc_corrected=3, ecc_uncorrected=1
    )
    labels = ("ascend", "3", "davinci3", "Ascend 910B3")
    assert {(each.family, each.labels): each.value for each in device_values(npu, "n1", pci)} == {
        (DeviceMetric.CLOCK, labels): 1.8e9,
        (DeviceMetric.REPLAYS, labels): 4,
        (DeviceMetric.ECC, (*labels, "corrected")): 3,
        (DeviceMetric.ECC, (*labels, "uncorrected")): 1,
    }
    amd = DeviceFigures("amd", 0, "AMD-1", "MI210", ecc_uncorrected=2)
    told = {(each.family, each.labels): each.value for each in device_values(amd, "n1", pci)}
    assert (
        told[DeviceMetric.AMD_ECC, ("n1", "0", "double")] == 2
        and (DeviceMetric.AMD_ECC, ("n1", "0", "single")) not in told
    )
