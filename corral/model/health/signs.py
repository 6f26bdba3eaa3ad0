"""Signs of trouble of nodes and devices, with their weights.

A weight of 10 closes a node under the default settings.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

NODE: Final = -1
"""The device number of a sign that is about the whole node."""


class SignKind(StrEnum):
    """What was seen."""

    START_FAILED = "start-failed"
    """A task could not be started, for a reason that lies with the node."""
    NODE_EXIT = "node-exit"
    """A task ended with a code that the engine gives when the node is at fault."""
    CLAIMED_EXIT = "claimed-exit"
    """A task ended with a code by which programs report a broken device."""
    VANISHED = "vanished"
    """The node was not ready for too long while tasks could be on it."""
    XID = "xid"
    """A device was found unhealthy for an Xid error of NVIDIA's driver."""
    ECC = "ecc"
    """A device was found unhealthy for memory errors that could not be corrected, or counted some."""
    DEVICE = "device"
    """A device was found unhealthy for another reason."""
    SLOW_TASK = "slow-task"
    """A task reported its steps at least 20 % slower than its peers in the same gang."""
    HANG = "hang"
    """A task reported no step any more while its peers in the same gang went on."""
    CHECK_FAILED = "check-failed"
    """A check script found a problem."""
    THROTTLED = "throttled"
    """Clocks of devices were held down for ten minutes, by heat or for power, or heat held those of processors down."""
    PCIE_ERRORS = "pcie-errors"
    """A device repeated many transfers on PCI Express, or the kernel counted errors of it there."""
    LINK_FLAPS = "link-flaps"
    """A network link of the node went down again and again."""
    CLOCK_SKEW = "clock-skew"
    """The node's clock differs from the server's."""
    FULL_DISK = "full-disk"
    """A file system is nearly full."""
    READ_ONLY_DISK = "read-only-disk"
    """A file system that could be written to has become read-only."""
    DISK_ERRORS = "disk-errors"
    """A disk or its file system counted errors."""
    HANGING_MOUNT = "hanging-mount"
    """Mounts of servers had errors on this node for ten minutes, and none on most others."""
    HEALTH_EVENT = "health-event"
    """A health monitor of the cluster (NVSentinel) reported a problem."""


WEIGHTS: Final[dict[SignKind, float]] = {
    SignKind.START_FAILED: 3.0,
    SignKind.NODE_EXIT: 4.0,
    SignKind.CLAIMED_EXIT: 1.0,
    SignKind.VANISHED: 3.0,
    SignKind.XID: 6.0,
    SignKind.ECC: 6.0,
    SignKind.DEVICE: 6.0,
    SignKind.SLOW_TASK: 2.0,
    SignKind.HANG: 2.0,
    SignKind.CHECK_FAILED: 4.0,
    SignKind.THROTTLED: 1.0,
    SignKind.PCIE_ERRORS: 3.0,
    SignKind.LINK_FLAPS: 3.0,
    SignKind.CLOCK_SKEW: 2.0,
    SignKind.FULL_DISK: 2.0,
    SignKind.READ_ONLY_DISK: 6.0,
    SignKind.DISK_ERRORS: 4.0,
    SignKind.HANGING_MOUNT: 2.0,
    SignKind.HEALTH_EVENT: 4.0,
}
"""What a sign adds to a score."""
CHECK_AGAIN_SECONDS: Final = 30.0
"""Seconds in which a repetition of a failed check adds nothing: a check that fails in every round is worse each time."""
AGAIN_SECONDS: Final = 3600.0
"""Seconds in which a repetition of a sign from the same source adds nothing.

Exit codes of one user's programs add at most 1 an hour, and so do clocks that are held down, all of a node together:
with a half-life of 6 hours each is a score of 9.2 at most, and closes no node alone.
"""


class Sign(msgspec.Struct, frozen=True):
    """One sign; `at` is in seconds since 1970."""

    kind: SignKind
    node: str
    """`engine/node`."""
    at: float
    reason: str
    """One sentence."""
    device: int = NODE
    weight: float | None = None
    """What it adds to the score; None: as `WEIGHTS` says."""
    job: str = ""
    """The job of which it was seen; "" is none."""
    source: str = ""
    """Who or what gave it: repetitions of one source count once an hour."""

    @property
    def adds(self) -> float:
        """What it adds to the score."""
        return WEIGHTS[self.kind] if self.weight is None else self.weight

    @property
    def again_seconds(self) -> float:
        """Seconds in which a repetition of the same source adds nothing."""
        return CHECK_AGAIN_SECONDS if self.kind is SignKind.CHECK_FAILED else AGAIN_SECONDS
