"""Structs for the parts of `resource.k8s.io/v1` slices and claims that Corral reads."""

from __future__ import annotations

from msgspec import field

from corral.engines.kubernetes.watch.node_structs import Taint
from corral.engines.kubernetes.watch.pod_structs import Meta, Object, Slim


class Attribute(Slim, frozen=True):
    """One attribute of a device. Exactly one field is set."""

    text: str | None = field(name="string", default=None)
    number: int | None = field(name="int", default=None)
    flag: bool | None = field(name="bool", default=None)
    version: str | None = None


class Capacity(Slim, frozen=True):
    """The amount of one resource of a device."""

    value: str = ""


class SliceDevice(Slim, frozen=True):
    """One device as its driver publishes it."""

    name: str = ""
    attributes: dict[str, Attribute] = {}
    capacity: dict[str, Capacity] = {}
    taints: tuple[Taint, ...] = ()


class Pool(Slim, frozen=True):
    """The pool of a slice. Only slices of the highest generation count, once all of them exist."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class SliceSpec(Slim, frozen=True):
    """The driver, pool, node and devices of a slice."""

    driver: str = ""
    pool: Pool = Pool()
    node_name: str = ""
    all_nodes: bool = False
    devices: tuple[SliceDevice, ...] = ()


class ResourceSlice(Object, frozen=True):
    """`resource.k8s.io/v1` ResourceSlice."""

    spec: SliceSpec = SliceSpec()


class Result(Slim, frozen=True):
    """One device allocated to one request of a claim."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    """Whether the claim has admin access, which does not exclude others from the device."""


class Results(Slim, frozen=True):
    """All devices of an allocation."""

    results: tuple[Result, ...] = ()


class Allocation(Slim, frozen=True):
    """The allocation of a claim. It never changes once set."""

    devices: Results = Results()


class Consumer(Slim, frozen=True):
    """A pod that a claim is reserved for."""

    resource: str = ""
    name: str = ""
    uid: str = ""


class ClaimStatus(Slim, frozen=True):
    """The allocation of a claim and its reservations."""

    allocation: Allocation | None = None
    reserved_for: tuple[Consumer, ...] = ()


class ClaimMeta(Meta, frozen=True):
    """`metadata` of a claim. Corral annotates its own claims with the purpose of each device."""

    annotations: dict[str, str] = {}


class ResourceClaim(Object, frozen=True):
    """`resource.k8s.io/v1` ResourceClaim."""

    metadata: ClaimMeta = ClaimMeta()
    status: ClaimStatus = ClaimStatus()
