"""What no machine could ever hold is refused at submit, and nothing that one could."""

from __future__ import annotations

import pytest

from corral.model.inventory import Device, Node
from corral.service.capacity import Capacity, impossible
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
    found = impossible(load_job(f"name: j\nroles: {{w: {{command: x, {role}}}}}\n"), Capacity(NODES))
    assert (said in found) if said else found == ""


MANY = tuple(
    Node(f"local/n{at}", devices=tuple(Device(i, f"n{at}:{i}") for i in range(2 + at % 2)), cpu_millis=4000,
         memory_bytes=2**33, labels={"host": f"n{at}", "zone": "ab"[at % 2]})
    for at in range(10)
)  # fmt: skip


@pytest.mark.parametrize(
    ("role", "said"),
    [
        ("resources: {devices: 1}, replicas: 25", ""),
        ("resources: {devices: 1}, replicas: 26", "room for 25"),
        ("resources: {devices: 3}, replicas: 5", ""),
        ("resources: {devices: 3}, replicas: 6", "room for 5"),
        ("resources: {devices: 1}, nodeSelector: {zone: a}, replicas: 11", "room for 10"),
        ("resources: {devices: 1}, nodeSelector: {host: n3}, replicas: 4", "room for 3"),
        ("resources: {devices: 1}, nodeSelector: {host: n10}", "there are none"),
        ("resources: {devices: {ids: ['2']}}, replicas: 5", ""),
        ("resources: {devices: {ids: ['2']}}, replicas: 6", "room for 5"),
        ("resources: {devices: {ids: ['n3:2']}}", ""),
        ("resources: {devices: {ids: ['n2:2']}}", "room for 0"),
        ("resources: {devices: {ids: ['n3:1', 'n5:1']}}", "room for 0"),
    ],
)
def test_nodes_that_count_alike_are_counted_once_and_labels_and_ids_still_tell_them_apart(role: str, said: str) -> None:
    capacity = Capacity(MANY)
    for _ in range(2):
        found = impossible(load_job(f"name: j\nroles: {{w: {{command: x, {role}}}}}\n"), capacity)
        assert (said in found) if said else found == ""
