"""A task on YARN sees the devices of its own by the variables of their vendor."""

from __future__ import annotations

import msgspec
import pytest

from corral.engines.yarn.kind import YarnOptions, settings_of
from corral.engines.yarn.orders import order_of
from corral.engines.yarn.slots import Attempt, Phase
from corral.kernel.ids import AttemptId, job_id
from corral.model.inventory import Device
from corral.model.launch import TaskLaunch
from tests.engines.yarn.test_names_and_refusals import WHERE

SETTINGS = settings_of(YarnOptions(**WHERE), "s", "")
ATTEMPT = AttemptId(f"{job_id(1, 1)}.0.worker.0.0")
COUNTED = Device(0, "yarn/nm1:0", "gpu")
NVIDIA = Device(0, "GPU-0", "gpu", "A100")
AMD = Device(0, "AMD-00000000000000ff", "gpu", "AMD gfx942")
ASCEND = Device(0, "davinci0", "npu", "Ascend")
CUDA, HIP = {"CUDA_VISIBLE_DEVICES": ""}, {"ROCR_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}


@pytest.mark.parametrize(
    ("kind", "device", "numbers", "variables"),
    [
        ("gpu", COUNTED, (1, 3), {"CUDA_VISIBLE_DEVICES": "1,3"}),
        ("gpu", NVIDIA, (1, 3), {"CUDA_VISIBLE_DEVICES": "1,3"}),
        ("gpu", AMD, (1, 3), {"ROCR_VISIBLE_DEVICES": "1,3", "HIP_VISIBLE_DEVICES": "0,1"}),
        ("npu", ASCEND, (1, 3), {"ASCEND_RT_VISIBLE_DEVICES": "1,3"}),
        ("gpu", None, (), CUDA | HIP),
        ("npu", None, (), {"ASCEND_RT_VISIBLE_DEVICES": ""}),
        ("fpga", None, (), {}),
    ],
)
def test_a_task_sees_the_devices_that_its_slot_gave_it(
    kind: str, device: Device | None, numbers: tuple[int, ...], variables: dict[str, str]
) -> None:
    settings = msgspec.structs.replace(SETTINGS, device_kind=kind)
    given = tuple(msgspec.structs.replace(device, index=number) for number in numbers) if device else ()
    launch = TaskLaunch(attempt=ATTEMPT, command=("true",), user="ada", node="yarn/nm1", env={}, devices=given)
    attempt = Attempt(ATTEMPT, Phase.ASSIGNED, launch=launch, devices=numbers)
    env = order_of(attempt, launch, settings, "10.0.0.7")["env"]
    assert {name: value for name, value in env.items() if name.endswith("_VISIBLE_DEVICES")} == variables
    assert env["CORRAL_HOST"] == "10.0.0.7"
    assert env["CORRAL_DEVICES"] == ",".join(map(str, numbers))
