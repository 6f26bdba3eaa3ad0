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


_KernelPath = Annotated[
    str, msgspec.Meta(pattern=r"^[0-9]{1,4}/((io_links|mem_banks)/[0-9]{1,4}/)?(properties|name|umc_err_count)$")
]
_KernelText = Annotated[str, msgspec.Meta(max_length=8 * 1024)]


class ProbeReport(msgspec.Struct, frozen=True):
    """What a probe tells of the devices of its node, as the vendor's tool prints it, or the kernel tells."""

    devices: _Printed = ""
    topology: _Printed = ""
    trouble: Annotated[str, msgspec.Meta(max_length=1000)] = ""
    """Why there is nothing to tell."""
    vendor: Literal["nvidia", "amd", "ascend"] = "nvidia"
    files: Annotated[dict[_KernelPath, _KernelText], msgspec.Meta(max_length=10_000)] = {}
    """The texts of AMD's kernel driver, by their paths below its topology's nodes."""


class Probed(SlotHello, frozen=True):
    """A probe's only call."""

    report: ProbeReport = ProbeReport()


class AgentReport(msgspec.Struct, frozen=True):
    """How the agent of a node began or ended."""

    state: Literal["begun", "ended"]
    code: Annotated[int, msgspec.Meta(ge=0, le=255)] = 0
    said: Annotated[str, msgspec.Meta(max_length=1000)] = ""
    """The last lines that it printed."""


class AgentTold(SlotHello, frozen=True, kw_only=True):
    """A call about the agent of a node."""

    report: AgentReport


class SlotState(msgspec.Struct, frozen=True):
    """A slot's call for orders."""

    attempts: Annotated[dict[_Name, AttemptReport], msgspec.Meta(max_length=1000)]
    wait: Annotated[float, msgspec.Meta(ge=0, le=3600)] = 0.0
