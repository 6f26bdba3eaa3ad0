"""Write a journal beside a core: how it began, each step, and checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from corral.control.core.core import Batch, Core
from corral.control.core.inputs import Input, Recovered
from corral.control.core.machines import Machines
from corral.control.journal.decisions import WaitingReasons, decisions_of, digest_of, first_waits
from corral.control.journal.records import Begun, Checkpoint, encoded, encoded_inputs, encoded_step, state_of
from corral.control.journal.rules import Rules
from corral.launcher import LaunchPolicy


class Records(Protocol):
    """Where encoded records go."""

    def add(self, record: bytes) -> None:
        """Take a record."""
        ...


class JournalWriter:
    """Steps cores and writes down what they were told and decided; `number` is that of the last step."""

    def __init__(self, records: Records, rules: Rules, version: str, *, unexplained: bool = False) -> None:
        """`version` is that of Corral; the cores decide by `rules`, and if `unexplained` find no reasons to wait."""
        self._records = records
        self._rules = rules
        self._version = version
        self._unexplained = unexplained
        self._waiting = WaitingReasons()
        self.number = 0

    def begin(self, recovered: Recovered, launch: LaunchPolicy, machines: Machines, now: float) -> None:
        """Write how a core begins; to be called before it takes `machines` over."""
        self._waiting = WaitingReasons(recovered.jobs)
        self._records.add(encoded(self._begun(recovered, launch, machines, now)))

    def checkpoint(self, core: Core, recovered: Recovered, now: float) -> None:
        """Write the state between two steps of a core that goes on.

        A core that finds reasons to wait knows which of them it told. A checkpoint lacks that: one built from it would tell
        them again, and store other steps. Raises ValueError for such a core; it has to be built anew, and `begin` written.
        """
        if not self._unexplained:
            raise ValueError("a core that finds reasons to wait has no checkpoints")
        begun = self._begun(recovered, core.launch_policy, core.machines, now)
        begun = msgspec.structs.replace(begun, underway=core.underway())
        self._records.add(encoded(Checkpoint(self.number, begun)))

    def step(self, core: Core, inputs: Sequence[Input], now: float) -> Batch:
        """Step a core; its inputs and a hash of the batch are written."""
        written = encoded_inputs(inputs)
        batch = core.step(inputs, now)
        self.number += 1
        commands, waits = decisions_of(batch), self._waiting.follow(batch)
        decisions = (*commands, *first_waits(commands, waits))
        self._records.add(encoded_step(self.number, now, written, digest_of(batch), decisions))
        return batch

    def _begun(self, recovered: Recovered, launch: LaunchPolicy, machines: Machines, now: float) -> Begun:
        remembered, state = machines.remembered(), state_of(recovered)
        return Begun(now, self._version, self._rules, launch, remembered, state, self._unexplained)
