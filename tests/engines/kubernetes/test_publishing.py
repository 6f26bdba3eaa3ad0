"""A node's ResourceSlices are repaired when someone deletes or changes them, and written only when needed."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from corral.devices.dra.device_groups import node_devices, slice_contents
from corral.engines.kubernetes.api.access import kubeconfig_access
from corral.engines.kubernetes.api.transport import Transport
from corral.engines.kubernetes.devices.slice_publisher import CONTENT, Publisher
from corral.kernel.errors import Unavailable
from corral.spec.devices_document import load_devices
from tests.engines.kubernetes.faulty_server import kubeconfig, raw, serving
from tests.testbeds.kubernetes.controlplane import ControlPlane

pytestmark = pytest.mark.kubernetes
DRIVER = "npu.example.com"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
_COUNT = itertools.count(1)


def contents(count: int, broken: bool = False) -> list[list[dict[str, Any]]]:
    unhealthy = "unhealthy: [{number: 0, reason: fan}]" if broken else ""
    text = f"devices: [{{kind: npu, model: a2, memory: 1Gi, count: {count}, pcieRoots: ['pci0000:00'], {unhealthy}}}]"
    return slice_contents(list(node_devices(load_devices(text), "n").values()))


class Node:
    """A node of the test's own, and its slices as the API server has them."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane, self.name = plane, f"published-{next(_COUNT)}"

    def make(self) -> str:
        made = self.plane.request("POST", "/api/v1/nodes", {"metadata": {"name": self.name}})
        return str(made["metadata"]["uid"])

    def slices(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.plane.request("GET", f"{SLICES}?fieldSelector=spec.nodeName={self.name}")[
            "items"
        ]
        return found

    def devices(self) -> int:
        return sum(len(found["spec"].get("devices") or []) for found in self.slices())

    def generations(self) -> set[int]:
        return {found["spec"]["pool"]["generation"] for found in self.slices()}


@pytest.fixture
def node(control_plane: ControlPlane) -> Iterator[Node]:
    node = Node(control_plane)
    yield node
    control_plane.request("DELETE", f"/api/v1/nodes/{node.name}")


@asynccontextmanager
async def publishing(credentials: Path, node: Node) -> AsyncIterator[Publisher]:
    transport = Transport(kubeconfig_access(str(credentials)))
    await transport.open()
    publisher = Publisher(transport, DRIVER, node.name)
    task = asyncio.create_task(publisher.run())
    try:
        yield publisher
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await transport.close()


async def until(look: Callable[[], object], seconds: float = 120) -> None:
    async with asyncio.timeout(seconds):
        while not await asyncio.to_thread(look):
            await asyncio.sleep(0.02)


async def test_devices_are_published_as_the_nodes_own(control_plane: ControlPlane, node: Node) -> None:
    uid = node.make()
    async with publishing(control_plane.kubeconfig, node) as publisher:
        publisher.publish(contents(4))
        await until(lambda: publisher.published)
    (found,) = node.slices()
    assert found["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": uid, "controller": True}
    ]
    assert found["spec"]["driver"] == DRIVER and found["spec"]["nodeName"] == node.name
    assert found["spec"]["pool"] == {"name": node.name, "generation": 1, "resourceSliceCount": 1}
    assert found["spec"]["devices"] == contents(4)[0]


async def test_what_is_right_is_not_written_again(control_plane: ControlPlane, node: Node) -> None:
    """Neither the driver that wrote it nor a new one rewrites it, though the API server drops taints (a feature gate)."""
    node.make()
    async with publishing(control_plane.kubeconfig, node) as publisher:
        publisher.publish(contents(2, broken=True))
        await until(lambda: publisher.published)
        assert publisher.writes == 1
        assert node.slices()[0]["spec"]["devices"][0]["attributes"]["healthy"] == {"bool": False}
        publisher.published = False
        publisher.look_again()
        await until(lambda: publisher.published)
        assert publisher.writes == 1
    async with publishing(control_plane.kubeconfig, node) as another:
        another.publish(contents(2, broken=True))
        await until(lambda: another.published)
        assert another.writes == 0
        another.publish(contents(2))
        await until(lambda: node.generations() == {2})
        assert another.writes == 1


async def test_what_others_delete_or_change_is_put_right(control_plane: ControlPlane, node: Node) -> None:
    node.make()
    async with publishing(control_plane.kubeconfig, node) as publisher:
        publisher.publish(contents(2))
        await until(lambda: publisher.published)
        for _ in range(3):
            control_plane.request("DELETE", f"{SLICES}?fieldSelector=spec.nodeName={node.name}")
            await until(lambda: node.devices() == 2)
        (found,) = node.slices()
        found["spec"]["devices"][0]["attributes"]["model"] = {"string": "better"}
        assert CONTENT in found["metadata"]["annotations"]
        control_plane.request("PUT", f"{SLICES}/{found['metadata']['name']}", found)
        await until(lambda: node.slices()[0]["spec"]["devices"] == contents(2)[0])


async def test_many_devices_are_several_slices_of_one_generation(control_plane: ControlPlane, node: Node) -> None:
    node.make()
    async with publishing(control_plane.kubeconfig, node) as publisher:
        publisher.publish(contents(300))
        await until(lambda: publisher.published)
        assert (node.devices(), len(node.slices()), node.generations()) == (300, 3, {1})
        publisher.publish(contents(5))
        await until(lambda: len(node.slices()) == 1)
        assert (node.devices(), node.generations()) == (5, {2})
        assert node.slices()[0]["spec"]["pool"]["resourceSliceCount"] == 1
        publisher.publish(contents(129))
        await until(lambda: node.devices() == 129 and len(node.generations()) == 1)
        assert {found["spec"]["pool"]["resourceSliceCount"] for found in node.slices()} == {2}


async def test_a_node_that_is_not_there_yet_is_waited_for(control_plane: ControlPlane, node: Node) -> None:
    async with publishing(control_plane.kubeconfig, node) as publisher:
        publisher.publish(contents(1))
        await asyncio.to_thread(node.slices)
        assert not publisher.published
        node.make()
        await until(lambda: publisher.published)
    assert node.devices() == 1


async def test_a_missing_permission_is_named(
    control_plane: ControlPlane, node: Node, capsys: pytest.CaptureFixture[str]
) -> None:
    node.make()
    async with publishing(control_plane.kubeconfig_for("nobody-publishes"), node) as publisher:
        publisher.publish(contents(1))
        said = ""

        def told() -> bool:
            nonlocal said
            said += capsys.readouterr().out
            return "the verb list on resourceslices.resource.k8s.io" in said

        await until(told)
        assert not publisher.published


@pytest.mark.parametrize("nonsense", [b"<html>", b"[]", b'{"items": [{"metadata": {}}]}', b'{"items": 7}', b"\xff"])
async def test_nonsense_is_not_taken_for_slices(tmp_path: Path, nonsense: bytes) -> None:
    """A proxy's page instead of an answer: the driver goes on and asks again."""
    async with serving(*[raw(nonsense)] * 3) as server:
        transport = Transport(kubeconfig_access(str(kubeconfig(tmp_path, server.url))))
        await transport.open()
        publisher = Publisher(transport, DRIVER, "n1")
        publisher.publish(contents(1))
        with pytest.raises(
            Unavailable, match=r"answered nonsense when asked to list resourceslices\.resource\.k8s\.io"
        ):
            await publisher._put_right()
        await transport.close()
        assert publisher.writes == 0
