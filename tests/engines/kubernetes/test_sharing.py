"""Equal parts of many pods are stored once, without any change to a pod."""

from __future__ import annotations

from typing import Any

import msgspec

from corral.engines.kubernetes.watch import deduplication
from corral.engines.kubernetes.watch.object_copy import Mirror
from corral.engines.kubernetes.watch.pod_structs import Pod


def pod(name: str, cpu: str = "4", message: str = "") -> Pod:
    amounts = {"cpu": cpu, "memory": "16Gi"}
    document: dict[str, Any] = {
        "metadata": {"name": name, "uid": name, "resourceVersion": "1"},
        "spec": {"containers": [{"name": "task", "resources": {"requests": amounts, "limits": amounts}}]},
        "status": {"conditions": [{"type": "Ready", "status": "True", "message": message}]},
    }
    return msgspec.json.decode(msgspec.json.encode(document), type=Pod)


def kept(*pods: Pod) -> list[Pod]:
    mirror: Mirror[Pod] = Mirror()
    for thing in pods:
        mirror.put(thing)
    return list(mirror.items.values())


def test_equal_parts_are_one_object_and_different_ones_are_not() -> None:
    a, b, c = kept(pod("a"), pod("b"), pod("c", cpu="8"))
    assert a.status.conditions is b.status.conditions
    assert a.spec.containers[0].resources is b.spec.containers[0].resources
    assert c.spec.containers[0].resources.requests == {"cpu": "8", "memory": "16Gi"}
    assert (a, b, c) == (pod("a"), pod("b"), pod("c", cpu="8"))


def test_free_text_is_not_kept_beyond_its_pod() -> None:
    a, b = kept(pod("a", message="x"), pod("b", message="x"))
    assert a.status.conditions is not b.status.conditions


def test_the_pool_does_not_grow_without_bound() -> None:
    pool = deduplication.Pool()
    for number in range(3 * deduplication.MOST_SHARED):
        pool.share(pod("a", cpu=str(number)))
    assert len(pool._parts) <= deduplication.MOST_SHARED + 3
