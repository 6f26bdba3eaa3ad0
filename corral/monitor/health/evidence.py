"""Turn what control stores and sees into signs: failed starts, exits, nodes that vanish, unhealthy devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from corral.kernel.ids import parse_attempt_id
from corral.model.exits import NODE_LOST, START_FAILED_TRANSIENTLY, START_TIMED_OUT, exit_spec
from corral.model.health.ledger import Ledger
from corral.model.health.signs import Sign, SignKind
from corral.model.inventory import Node
from corral.model.store_writes import AttemptWrite

_START_FAILURES: Final = frozenset(
    {START_FAILED_TRANSIENTLY, START_TIMED_OUT, -110, -300, -310, -1002, -1006, -1201, -1204, -1205, -1300}
)
"""Codes of attempts that never ran, without those that say that the request was wrong."""
_NODE_EXITS: Final = frozenset({-1000, -1006, -1205})
"""Codes that engines give to tasks whose node failed them while they ran; a lost node is counted once, not by task."""
_CLAIMS: Final = frozenset({128, 223})
"""Codes by which programs report that a device has failed; a program can end with any code, so they add little."""
_LONGEST: Final = 300
"""Characters of a reason."""


class Evidence:
    """Looks at batches and machines, and tells the ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._failed_at: dict[str, float] = {}
        """By node, when a start failed there last."""
        self._unhealthy: dict[tuple[str, int], str] = {}
        self._lost: set[str] = set()
        self._looked = False

    def stored(self, attempts: Iterable[AttemptWrite], now: float) -> None:
        """Look at attempts that have changed; times are in seconds since 1970."""
        for each in attempts:
            if not each.node:
                continue
            if each.code is not None:
                self._ended(each, now)
            elif each.started_at is not None and each.started_at > self._failed_at.get(each.node, float("-inf")):
                self.ledger.started(each.node)

    def _ended(self, attempt: AttemptWrite, now: float) -> None:
        code = attempt.code or 0
        if attempt.started_at is None and code in _START_FAILURES:
            self._failed_at[attempt.node] = now
            self._tell(attempt, SignKind.START_FAILED, now, "a task could not be started")
        elif code == NODE_LOST:
            self.ledger.add(Sign(SignKind.VANISHED, attempt.node, now, "tasks were lost with the node"))
        elif code in _NODE_EXITS:
            self._tell(attempt, SignKind.NODE_EXIT, now, "a task ended through the node's fault")
        elif code in _CLAIMS:
            self._tell(attempt, SignKind.CLAIMED_EXIT, now, "a program reported a broken device", attempt.user)

    def _tell(self, attempt: AttemptWrite, kind: SignKind, now: float, what: str, source: str = "") -> None:
        detail = attempt.diagnostics.strip().partition("\n")[0] or exit_spec(attempt.code or 0).phrase
        reason = f"{what} (code {attempt.code}): {detail}"[:_LONGEST]
        job = parse_attempt_id(attempt.id).job
        self.ledger.add(Sign(kind, attempt.node, now, reason, job=job, source=source))

    def machines(self, nodes: Mapping[str, Node], lost: Callable[[str], str], now: float) -> None:
        """Look at all nodes as they were last seen; `lost` says why one counts as lost, "" if it does not."""
        self.ledger.see_nodes(nodes)
        gone = {name: why for name, node in nodes.items() if not node.mismatches and (why := lost(name))}
        for name, why in gone.items():
            if name not in self._lost and self._looked:
                self.ledger.add(Sign(SignKind.VANISHED, name, now, why[:_LONGEST]))
        self._lost = set(gone)
        bad = {
            (name, device.index): device.health_reason
            for name, node in nodes.items()
            for device in node.devices
            if not device.healthy
        }
        for (name, index), why in bad.items():
            known = not self._looked and index in self.ledger.of(name).scores
            if (name, index) not in self._unhealthy and not known:
                reason = f"device {index} is unhealthy: {why or 'no reason given'}"[:_LONGEST]
                self.ledger.add(Sign(_device_kind(why), name, now, reason, device=index))
        self._unhealthy = bad
        self._looked = True


def _device_kind(reason: str) -> SignKind:
    text = reason.lower()
    if "xid" in text:
        return SignKind.XID
    return SignKind.ECC if "ecc" in text or "memory" in text else SignKind.DEVICE
