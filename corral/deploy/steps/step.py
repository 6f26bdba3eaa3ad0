"""Steps of a plan: what is done on a host, in order, and whether it is done already."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

from corral.deploy.steps.bundle import BundleFile

Kind = Literal[
    "package", "program", "swap", "file", "module", "sysctl", "service", "image", "kubeadm", "chart", "hadoop", "registry",
]  # fmt: skip
KINDS: Final = (
    "package", "program", "swap", "file", "module", "sysctl", "service", "image", "kubeadm", "chart", "hadoop", "registry",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Joining:
    """What a host needs of the control plane, or of the master of Hadoop, that it joins."""

    first: str
    """The name of that host; a control plane makes the token."""
    there: bool
    """Whether that was up already when it was looked at."""
    endpoint: str
    address: str
    """The address by which the others know the host."""
    plane: bool = False
    """Whether it becomes a control plane, too."""
    closed: bool = False
    """Whether the node takes no tasks until it is validated."""


@dataclass(frozen=True, slots=True)
class Portal:
    """The portal's address, and the files of its certificate and key, "" where it makes its own."""

    address: str
    certificate: str
    key: str


@dataclass(frozen=True, slots=True)
class Step:
    """One step on a host; `detail` has the lines of a difference, or the phases of kubeadm."""

    kind: Kind
    title: str
    needed: bool = True
    """Whether it changes something; False where the host is so already."""
    detail: tuple[str, ...] = ()
    call: tuple[str, ...] = ()
    """The function of `do.sh` that does it, and its arguments; empty for a step that `up` does not do yet."""
    content: bytes = field(default=b"", repr=False)
    """What the function reads: the wanted text of a file, or the digests of those that are sent."""
    files: tuple[BundleFile, ...] = ()
    """The files that are sent to the host first."""
    joining: Joining | None = None
    portal: Portal | None = None
    """The portal's certificate, or that of the registry, to be sent."""

    def to_document(self) -> dict[str, Any]:
        """The step for programs."""
        return {"kind": self.kind, "title": self.title, "needed": self.needed, "detail": list(self.detail)}


@dataclass(frozen=True, slots=True)
class HostPlan:
    """All steps of one host, in order, and what stands in their way."""

    name: str
    roles: tuple[str, ...]
    steps: tuple[Step, ...] = ()
    obstacles: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    bars: tuple[str, ...] = ()
    """The obstacles that keep even the steps which need no other host from being done."""

    @property
    def changes(self) -> int:
        """How many steps change something."""
        return sum(step.needed for step in self.steps)

    @property
    def doable(self) -> tuple[Step, ...]:
        """The steps that are needed and that `up` does, in order."""
        return tuple(step for step in self.steps if step.needed and step.call)

    @property
    def later(self) -> tuple[Step, ...]:
        """The steps that are needed and that `up` does not do yet."""
        return tuple(step for step in self.steps if step.needed and not step.call)

    def to_document(self) -> dict[str, Any]:
        """The plan of the host for programs."""
        return {
            "name": self.name,
            "roles": list(self.roles),
            "obstacles": list(self.obstacles),
            "notes": list(self.notes),
            "steps": [step.to_document() for step in self.steps],
        }
