"""The messages of slots, with bounds on every field: a slot is a user's container, and may send anything."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

_Port = Annotated[int, msgspec.Meta(ge=1, le=65_535)]
_Ports = Annotated[tuple[_Port, ...], msgspec.Meta(max_length=1000)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
_Time = Annotated[float, msgspec.Meta(ge=0, le=1e11)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**60)]


class SlotHello(msgspec.Struct, frozen=True):
    """A slot's first call."""

    service: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9-]{1,63}$")]
    instance: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9-]{1,60}-[0-9]{1,9}$")]
    """The instance of a component, which YARN numbers."""
    container: Annotated[str, msgspec.Meta(pattern=r"^container_[0-9a-z_]{1,80}$")]
    host: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9._:-]{1,253}$")]


class AttemptReport(msgspec.Struct, frozen=True):
    """The state of an attempt as its slot tells it."""

    state: Literal["starting", "running", "ended", "lost"]
    """`lost`: an agent that ran in this container before has begun it, and it has been killed."""
    at: _Time = 0.0
    """Seconds since 1970 at which the state began."""
    pid: _Count = 0
    ports: Annotated[dict[_Name, _Ports], msgspec.Meta(max_length=100)] = {}
    devices: Annotated[tuple[_Count, ...], msgspec.Meta(max_length=1000)] = ()
    code: Annotated[int, msgspec.Meta(ge=0, le=255)] = 0
    signal: Annotated[int, msgspec.Meta(ge=0, le=64)] = 0
    reason: Annotated[str, msgspec.Meta(max_length=1000)] = ""
    stopping: bool = False


_Printed = Annotated[str, msgspec.Meta(max_length=128 * 1024)]


class ProbeReport(msgspec.Struct, frozen=True):
    """What a probe tells of the devices of its node, as the vendor's tool prints it."""

    devices: _Printed = ""
    topology: _Printed = ""
    trouble: Annotated[str, msgspec.Meta(max_length=1000)] = ""
    """Why there is nothing to tell."""


class Probed(SlotHello, frozen=True):
    """A probe's only call."""

    report: ProbeReport = ProbeReport()


class SlotState(msgspec.Struct, frozen=True):
    """A slot's call for orders."""

    attempts: Annotated[dict[_Name, AttemptReport], msgspec.Meta(max_length=1000)]
    wait: Annotated[float, msgspec.Meta(ge=0, le=3600)] = 0.0
