"""Vendor variables confine a task to its devices; described devices set none, but where they hide real ones."""

from __future__ import annotations

import os

import msgspec
import pytest

from corral.engines.local import environment
from corral.engines.local.environment import base_environment, port_variable, task_environment, visible_devices
from corral.model.inventory import MPS_LABEL, Device
from corral.model.launch import TaskLaunch
from corral.model.placement import DeviceShare
from tests.engines.local_harness import launch

NVIDIA = [Device(i, f"GPU-{i}", model="NVIDIA A100") for i in range(4)]
SLICED = [Device(0, "MIG-a"), Device(1, "MIG-b"), Device(2, "GPU-2")]
AMD = [Device(i, f"AMD-{i}", model="AMD gfx90a") for i in range(4)]
ASCEND = [Device(i, f"davinci{i}", kind="npu", model="Ascend") for i in range(2)]
DESCRIBED = [Device(i, f"local/n1:{i}", model="NVIDIA A100", described=True) for i in range(4)]


@pytest.mark.parametrize(
    ("node", "given", "variables"),
    [
        (NVIDIA, [1, 3], {"CUDA_VISIBLE_DEVICES": "1,3", "NVIDIA_VISIBLE_DEVICES": "GPU-1,GPU-3"}),
        (NVIDIA, [], {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}),
        (SLICED, [1], {"CUDA_VISIBLE_DEVICES": "MIG-b", "NVIDIA_VISIBLE_DEVICES": "MIG-b"}),
        (SLICED, [2], {"CUDA_VISIBLE_DEVICES": "GPU-2", "NVIDIA_VISIBLE_DEVICES": "GPU-2"}),
        (AMD, [0], {"ROCR_VISIBLE_DEVICES": "0", "HIP_VISIBLE_DEVICES": "0"}),
        (AMD, [1, 3], {"ROCR_VISIBLE_DEVICES": "1,3", "HIP_VISIBLE_DEVICES": "0,1"}),
        (AMD, [], {"ROCR_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}),
        (ASCEND, [1], {"ASCEND_RT_VISIBLE_DEVICES": "1"}),
        (DESCRIBED, [0, 1], {}),
        ([], [], {}),
    ],
)
def test_a_task_sees_the_devices_it_was_given(node: list[Device], given: list[int], variables: dict[str, str]) -> None:
    found = visible_devices([node[index] for index in given], node)
    assert found.pop("CUDA_DEVICE_ORDER", "PCI_BUS_ID") == "PCI_BUS_ID"
    assert found == variables


@pytest.mark.parametrize(
    ("node", "given", "variables"),
    [
        (NVIDIA, [1, 3], {"CUDA_VISIBLE_DEVICES": "0,1", "NVIDIA_VISIBLE_DEVICES": "GPU-1,GPU-3"}),
        (NVIDIA, [], {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}),
        (SLICED, [1], {"CUDA_VISIBLE_DEVICES": "MIG-b", "NVIDIA_VISIBLE_DEVICES": "MIG-b"}),
        (AMD, [1, 3], {"ROCR_VISIBLE_DEVICES": "1,3", "HIP_VISIBLE_DEVICES": "0,1"}),
        (ASCEND, [1], {"ASCEND_RT_VISIBLE_DEVICES": "0"}),
    ],
)
def test_devices_of_a_container_count_from_0_where_it_has_no_others(
    node: list[Device], given: list[int], variables: dict[str, str]
) -> None:
    """`device_options` makes all devices of AMD visible inside, and of the others only the task's own."""
    task = msgspec.structs.replace(launch("true"), image="pytorch", devices=tuple(node[index] for index in given))
    env = task_environment(task, {}, {}, node)
    assert {name: value for name, value in env.items() if name.endswith("_VISIBLE_DEVICES")} == variables


@pytest.mark.parametrize("given", [DESCRIBED[:2], []])
def test_described_devices_hide_the_real_ones_of_the_machine(
    given: list[Device], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "vendors_here", lambda: frozenset({"nvidia", "ascend"}))
    assert visible_devices(given, DESCRIBED) == {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "",
        "NVIDIA_VISIBLE_DEVICES": "void",
        "ASCEND_RT_VISIBLE_DEVICES": "",
    }
    assert visible_devices([NVIDIA[1]], NVIDIA)["CUDA_VISIBLE_DEVICES"] == "1"


def test_the_job_may_not_lie_about_who_it_is() -> None:
    task = launch("true", env={"CORRAL_ATTEMPT": "another", "CUDA_VISIBLE_DEVICES": "7", "PATH": "/mine"})
    env = task_environment(task, {"PATH": "/usr/bin"}, {}, NVIDIA)
    assert env["CORRAL_ATTEMPT"] == task.attempt and env["PATH"] == "/mine"


def test_another_users_task_has_that_users_home_and_none_of_the_servers_python() -> None:
    server = {"PATH": "/p", "VIRTUAL_ENV": "/venv", "SECRET": "s", "LANG": "C"}
    own = base_environment(-1, server)
    assert own["VIRTUAL_ENV"] == "/venv" and "SECRET" not in own
    other = base_environment(65_534, server)
    if os.getuid() != 65_534:
        assert "VIRTUAL_ENV" not in other and other["USER"] == "nobody"
    assert base_environment(3_999_999, server)["USER"] == "3999999"


def test_port_variables_are_plain_names() -> None:
    assert port_variable("http-api.v2") == "CORRAL_PORT_HTTP_API_V2"


def half(device: Device, **env: str) -> TaskLaunch:
    """A task with half the power and a quarter of the memory of a device."""
    return msgspec.structs.replace(launch("true", env=env), devices=(device,), share=DeviceShare(500_000, 250_000))


def test_a_part_of_a_device_is_kept_to_where_the_multi_process_service_runs() -> None:
    real, labels = Device(2, "GPU-2", model="NVIDIA A100", memory_bytes=80 * 2**30), dict([MPS_LABEL])
    task = half(real, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="100")
    env = task_environment(task, {}, {}, [real], labels)
    assert env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "50", "a job may not widen its part"
    assert env["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == "0=20480M"
    assert env["CUDA_VISIBLE_DEVICES"] == "2"
    assert (env["CORRAL_DEVICE_COMPUTE_PERCENT"], env["CORRAL_DEVICE_MEMORY_BYTES"]) == ("50", str(20 * 2**30))


@pytest.mark.parametrize("device", [NVIDIA[1], AMD[0], DESCRIBED[0]])
def test_elsewhere_a_task_is_only_told_of_its_part(device: Device) -> None:
    labels = {} if device in NVIDIA else dict([MPS_LABEL])
    env = task_environment(half(device), {}, {}, [device], labels)
    assert env["CORRAL_DEVICE_COMPUTE_PERCENT"] == "50"
    assert not any(name.startswith("CUDA_MPS") for name in env)


def test_a_whole_device_has_no_limits() -> None:
    task = msgspec.structs.replace(launch("true"), devices=(NVIDIA[0],))
    env = task_environment(task, {}, {}, NVIDIA, dict([MPS_LABEL]))
    assert not any("MPS" in name or "PERCENT" in name for name in env)
