"""What `corral doctor` says of the devices of this machine."""

from __future__ import annotations

import pytest

from corral.devices.discovery_result import DiscoveryResult
from corral.engines.kind import Finding
from corral.engines.local.kind import devices_finding
from corral.model.inventory import Device

GOOD = Device(0, "GPU-0", model="NVIDIA H200")
BROKEN = Device(1, "GPU-1", model="NVIDIA H200", healthy=False, health_reason="the device does not answer")


@pytest.mark.parametrize(
    ("found", "finding"),
    [
        (DiscoveryResult((GOOD, GOOD)), Finding("devices", "good", "2 NVIDIA H200")),
        (
            DiscoveryResult((GOOD, BROKEN)),
            Finding("devices", "bad", "2 NVIDIA H200; not used are device 1: the device does not answer"),
        ),
        (
            DiscoveryResult(note="NVML: no driver"),
            Finding("devices", "note", "none found (NVML: no driver); tasks run without"),
        ),
    ],
)
def test_devices_are_told_by_model_and_health(found: DiscoveryResult, finding: Finding) -> None:
    assert devices_finding(lambda: found) == finding
