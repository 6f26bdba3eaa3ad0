"""Where a device plugin chooses, a gang cannot request specific or close devices; it is told so."""

from __future__ import annotations

import msgspec
import pytest

from corral.model.inventory import Node
from corral.model.requests import DeviceRequest, FractionRequest, GangRequest, TopologyRequest
from corral.scheduler import could_ever_fit
from corral.scheduler.placement.trial import Trial
from tests.scheduler.machines import cluster, gang, node, role


def shared(name: str) -> Node:
    """A node whose devices are only counted."""
    made = node(name)
    devices = tuple(
        msgspec.structs.replace(device, id=f"nvidia.com/gpu#{device.index}", cells=(), counted=True)
        for device in made.devices
    )
    return msgspec.structs.replace(made, devices=devices)


REFUSED = (
    ("a level below the node", gang("job", role(1, 2), required="pcie-switch")),
    ("a level below the node", gang("job", role(1, 1), required="numa")),
    ("a level below the node", gang("job", role(1, 2, topology=TopologyRequest(required="numa")))),
    ("a level below the node", gang("job", role(4, 1, topology=TopologyRequest(group_size=2, group_required="numa")))),
    ("the devices nvidia.com/gpu#1", gang("job", role(ask=DeviceRequest(ids=("nvidia.com/gpu#1",))))),
    ("the devices 0", gang("job", role(ask=DeviceRequest(ids=("0",))))),
    ("a part of a device", gang("job", role(ask=DeviceRequest(1, share=FractionRequest(compute=500_000))))),
)


@pytest.mark.parametrize(("wish", "request_"), REFUSED, ids=lambda each: each if isinstance(each, str) else "")
def test_a_wish_for_certain_devices_is_refused_on_shared_nodes(wish: str, request_: GangRequest) -> None:
    reasons = could_ever_fit(cluster(shared("n1"), shared("n2")), request_)
    assert reasons is not None
    assert reasons.binding.code == "counted-devices"
    assert reasons.binding.message == (
        f"Requires {wish}, but on shared nodes the device plugin chooses the devices; 8 devices there are only counted."
    )


@pytest.mark.parametrize(
    "request_",
    [gang("job", role(2, 4)), gang("job", role(2, 4), required="node"), gang("job", role(1, 4), preferred="numa")],
)
def test_counts_are_given_there(request_: GangRequest) -> None:
    assert Trial(cluster(shared("n1"), shared("n2"))).place(request_) is not None or request_.topology.required


@pytest.mark.parametrize(("wish", "request_"), REFUSED[:4])
def test_beside_shared_nodes_those_with_names_are_found(wish: str, request_: GangRequest) -> None:
    placed = Trial(cluster(shared("n1"), node("n2"))).place(request_)
    assert placed is not None
    assert {task.node for task in placed.tasks} == {"local/n2"}
