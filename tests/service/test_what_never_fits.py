"""What no machine could ever hold is refused at submit, and nothing that one could."""

from __future__ import annotations

import pytest

from corral.model.inventory import Device, Node
from corral.service.capacity import impossible
from corral.spec.reading import load_job

NODES = (
    Node("local/n1", devices=tuple(Device(at, f"d{at}") for at in range(4)), cpu_millis=8000, memory_bytes=2**33,
         resources={"ports": 10, "key": 2}),
    Node("local/n2", cpu_millis=8000, memory_bytes=2**33),
)  # fmt: skip


@pytest.mark.parametrize(
    ("role", "said"),
    [
        ("resources: {devices: 0.5}, replicas: 8", ""),
        ("resources: {devices: 0.5}, replicas: 9", "a part of 1 device"),
        ("resources: {devices: {bitmap: 0xf}}", ""),
        ("resources: {devices: {bitmap: 0x1f}}", "the devices 0, 1, 2, 3, 4"),
        ("resources: {devices: {ids: [1], share: {computePercent: 25}}}, replicas: 4", ""),
        ("resources: {other: {key: 1}}, replicas: 2", ""),
        ("resources: {other: {key: 1}}, replicas: 3", "room for 2"),
        ("resources: {other: {licence: 1}}", "room for 0"),
        ("ports: {http: 10}", ""),
        ("ports: {http: 11}, replicas: 8", ""),
        ("resources: {disk: 1Ti}", ""),
    ],
)
def test_only_what_cannot_be_is_refused(role: str, said: str) -> None:
    found = impossible(load_job(f"name: j\nroles: {{w: {{command: x, {role}}}}}\n"), NODES)
    assert (said in found) if said else found == ""
