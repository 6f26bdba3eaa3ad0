"""Why: devices reach pods through `resource.k8s.io/v1`; these structs are what Corral reads of its slices and claims."""

from __future__ import annotations

from msgspec import field

from corral.engines.kubernetes.nodes import Taint
from corral.engines.kubernetes.objects import Meta, Object, Slim


class Attribute(Slim, frozen=True):
    """One attribute of a device: exactly one of the four is there."""

    text: str | None = field(name="string", default=None)
    number: int | None = field(name="int", default=None)
    flag: bool | None = field(name="bool", default=None)
    version: str | None = None


class Capacity(Slim, frozen=True):
    """How much of one resource a device has."""

    value: str = ""


class SliceDevice(Slim, frozen=True):
    """One device as its driver publishes it."""

    name: str = ""
    attributes: dict[str, Attribute] = {}
    capacity: dict[str, Capacity] = {}
    taints: tuple[Taint, ...] = ()


class Pool(Slim, frozen=True):
    """Which slices belong together; only those of the highest generation count, when all of them are there."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class SliceSpec(Slim, frozen=True):
    """Which driver has which devices where."""

    driver: str = ""
    pool: Pool = Pool()
    node_name: str = ""
    all_nodes: bool = False
    devices: tuple[SliceDevice, ...] = ()


class ResourceSlice(Object, frozen=True):
    """`resource.k8s.io/v1` ResourceSlice."""

    spec: SliceSpec = SliceSpec()


class Result(Slim, frozen=True):
    """One device given to one request of a claim."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    """Whether it is for an administrator, who keeps nobody else from the device."""


class Results(Slim, frozen=True):
    """All devices of an allocation."""

    results: tuple[Result, ...] = ()


class Allocation(Slim, frozen=True):
    """What a claim was given; it never changes once set."""

    devices: Results = Results()


class Consumer(Slim, frozen=True):
    """Who may use a claim."""

    resource: str = ""
    name: str = ""
    uid: str = ""


class ClaimStatus(Slim, frozen=True):
    """What a claim was given, and to whom it is reserved."""

    allocation: Allocation | None = None
    reserved_for: tuple[Consumer, ...] = ()


class ClaimMeta(Meta, frozen=True):
    """`metadata` of a claim: Corral writes down with its own what each is for."""

    annotations: dict[str, str] = {}


class ResourceClaim(Object, frozen=True):
    """`resource.k8s.io/v1` ResourceClaim."""

    metadata: ClaimMeta = ClaimMeta()
    status: ClaimStatus = ClaimStatus()
