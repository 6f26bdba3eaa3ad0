"""A task gets the groups that its devices' files let in, and no others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from corral.devices.device_files import groups
from corral.model.inventory import Device

AMD = Device(1, "AMD-1", "gpu", "AMD gfx942")
ASCEND = Device(2, "davinci2", "npu", "Ascend")
NVIDIA = Device(0, "GPU-0", "gpu", "A100")

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give files to groups")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Device files as drivers make them: of a group, of everybody, and of root's alone."""
    made = {
        "dev/kfd": (0o660, 1105), "dev/dri/renderD128": (0o660, 1105), "dev/dri/renderD129": (0o660, 1106),
        "dev/dri/card0": (0o660, 1107),
        "dev/davinci1": (0o660, 1201), "dev/davinci2": (0o660, 1202), "dev/davinci_manager": (0o660, 1203),
        "dev/devmm_svm": (0o640, 1204), "dev/hisi_hdc": (0o666, 1205),
        "dev/nvidia0": (0o660, 1301),
    }  # fmt: skip
    for name, (mode, group) in made.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.chown(path, 0, group)
        path.chmod(mode)
    return tmp_path


def test_a_gpu_of_amd_needs_the_groups_of_its_driver_s_file_and_of_the_renderers(root: Path) -> None:
    assert groups([AMD], root) == (1105, 1106)


def test_an_npu_needs_the_groups_of_its_own_file_and_of_those_that_all_share(root: Path) -> None:
    """Where everybody may write a file, or nobody of its group, no group is needed or helps."""
    assert groups([ASCEND], root) == (1202, 1203)


def test_no_group_is_given_for_other_devices_or_of_root_s(root: Path) -> None:
    assert groups([NVIDIA, Device(1, "local/n1:1", "gpu", "AMD gfx942", described=True)], root) == ()
    os.chown(root / "dev/davinci2", 0, 0)
    assert groups([ASCEND], root) == (1203,)
    assert groups([ASCEND, AMD], root / "nowhere") == ()
