"""A core in virtual time that keeps a journal, and what replays of it find."""

from __future__ import annotations

import io
from typing import Any

from corral.control.core.configuration import Configured
from corral.control.core.core import Core
from corral.control.core.inputs import Recovered
from corral.control.core.machines import Machines, MachinesSeen
from corral.control.journal.blocks import BlockWriter
from corral.control.journal.replay import Replayed, replay
from corral.control.journal.rules import Rules
from corral.control.journal.writer import JournalWriter
from corral.model.configuration import Configuration
from tests.control.core.virtual import BEGIN, Played


class Journaled(Played):
    """A driver whose steps are written to a journal in memory.

    A server's core finds reasons to wait and has no checkpoints; an `unexplained` one is a simulation's.
    """

    def __init__(self, rules: Rules | None = None, *, unexplained: bool = False, **more: Any) -> None:
        rules = rules or Rules("fair")
        self.configured = Configured(rules.chosen(Configuration()))
        super().__init__(scheduling=self.configured.policy, **more)
        self.file = io.BytesIO()
        self.blocks = BlockWriter(self.file)
        self.journal = JournalWriter(self.blocks, rules, "1.0", unexplained=unexplained)
        self.driver.stepped = self.journal.step
        self.driver.core = self.core.fork(unexplained=unexplained)
        begun = Recovered(self.configured, machines=(MachinesSeen(self.machines),))
        self.journal.begin(begun, self.policy, Machines(self.not_ready_seconds), BEGIN)

    def begin_again(self) -> None:
        """Drop the core and build one from the store, as after a crash."""
        machines = self.core.machines.fork()
        recovered = self.recovered()
        self.journal.begin(recovered, self.policy, machines, self.driver.now)
        unexplained = self.core.world.queue.unexplained
        self.driver.core = Core(recovered, self.policy, machines, self.driver.now).fork(unexplained=unexplained)

    def checkpoint(self) -> None:
        """Write a checkpoint."""
        self.journal.checkpoint(self.core, self.recovered(), self.driver.now)

    def recovered(self) -> Recovered:
        """What a core begins with that takes over now."""
        cursor = self.core.intents.cursor
        return self.driver.store.recovered(self.core.configured, cursor, (MachinesSeen(self.machines),))

    def replayed(self, **more: Any) -> Replayed:
        """Close the journal and replay it."""
        self.blocks.close()
        return replay(io.BytesIO(self.file.getvalue()), **more)
