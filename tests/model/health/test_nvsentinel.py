"""NVSentinel's health events become signs; broken ones are refused in one sentence."""

from __future__ import annotations

import json

import pytest

from corral.kernel.errors import InvalidInput
from corral.model.health.nvsentinel import read_events, signs_of
from corral.model.inventory import Device, Node

NODE = Node("kubernetes/gpu-node-42", devices=(Device(0, "GPU-1"), Device(1, "GPU-2")))
EVENT = {
    "version": 1,
    "agent": "gpu-health-monitor",
    "componentClass": "GPU",
    "checkName": "XID_ERROR_48",
    "isFatal": True,
    "isHealthy": False,
    "message": "GPU 1 reported XID 48 (double bit ECC error)",
    "recommendedAction": "REPLACE_VM",
    "errorCode": ["XID-48"],
    "entitiesImpacted": [{"entityType": "GPU", "entityValue": "GPU-2"}],
    "metadata": {"driver_version": "535.104.05"},
    "generatedTimestamp": "2025-10-28T10:15:30Z",
    "nodeName": "gpu-node-42",
    "quarantineOverrides": None,
}
"""An event with the fields of the project's own example."""


@pytest.mark.parametrize("body", [EVENT, {"version": 1, "events": [EVENT]}])
def test_a_fatal_event_is_a_sign_of_its_device(body: object) -> None:
    (event,) = read_events(json.dumps(body).encode())
    (sign,) = signs_of(event, NODE, 5.0)
    assert (sign.device, sign.adds, sign.at) == (1, 10.0, 5.0)
    assert sign.reason == ("gpu-health-monitor: XID_ERROR_48 (XID-48): GPU 1 reported XID 48 (double bit ECC error)")


@pytest.mark.parametrize("change", [{"isHealthy": True}, {"quarantineOverrides": {"skip": True}}])
def test_an_event_of_a_healthy_component_is_none(change: dict[str, object]) -> None:
    (event,) = read_events(json.dumps(EVENT | change).encode())
    assert signs_of(event, NODE, 0.0) == []


def test_an_event_without_a_device_is_about_the_node() -> None:
    (event,) = read_events(json.dumps(EVENT | {"entitiesImpacted": [], "isFatal": False}).encode())
    (sign,) = signs_of(event, NODE, 0.0)
    assert (sign.device, sign.adds) == (-1, 2.0)


@pytest.mark.parametrize(
    "body",
    [b"", b"[", b"[]", b"{}", b"\xff", b'{"events": 1}', b'{"events": [{}]}', b'{"nodeName": ""}',
     b'{"nodeName": "x", "isFatal": "yes"}'],
)  # fmt: skip
def test_broken_events_are_refused(body: bytes) -> None:
    with pytest.raises(InvalidInput, match=r"^The health events? cannot be read: .*\.$"):
        read_events(body)
