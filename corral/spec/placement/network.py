"""The rule `network`: nodes with remote direct memory access (RDMA)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from pydantic import Field

from corral.spec.base import SpecModel
from corral.spec.placement.rule import Series, Weaker

RDMA_LABEL: Final = ("corral.dev/rdma", "true")
"""The label of nodes with RDMA. Engines set it where they see RDMA devices, and an administrator may."""
NOT_PREFERRED: Final = "no place with the preferred network (RDMA) was free"
"""The note on a placement without a network that was preferred."""
REQUIRED: Final = "required"
"""Only nodes with RDMA are enough."""
_TRIES: Final = {REQUIRED: (True,), "preferred": (True, False)}


class Network(SpecModel):
    """Requirements on the network between the replicas."""

    rdma: Literal["none", "preferred", "required"] = Field("none", description="Remote direct memory access.")


def tries(rdma: str) -> tuple[bool, ...]:
    """Whether a search keeps to nodes with RDMA: one answer for each search, in their order."""
    return _TRIES.get(rdma, (False,))


def weaker(rdma: str) -> Series[str]:
    """RDMA where there is a free place with it."""
    if rdma == REQUIRED:
        yield [Weaker(0.2, "", "rdma", "preferred", "without a network with RDMA", "preferred")]


def outside_hived(rdma: str) -> Iterator[str]:
    """What HiveD has no rule for."""
    if rdma == REQUIRED:
        yield "a network with remote direct memory access"
