"""Prepare, repeat, restart and reboot in any order: a device has one claim, and the CDI documents name it."""

from __future__ import annotations

import asyncio
import collections
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from corral.devices.dra.driver import Asked
from corral.kernel.errors import Conflict, CorralError, NotFound
from tests.devices.dra.node import Cluster, Node, given
from tests.examples import examples

DEVICES = [f"npu-{index}" for index in range(4)]
claims = st.sampled_from([f"c{number}" for number in range(6)])


class OneNode(RuleBasedStateMachine):
    """A node whose cluster allocates carelessly, so that only the driver knows which devices are free."""

    @initialize()
    def begin(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="corral-dra-"))
        self.cluster = Cluster()
        self.node = Node(self.root, self.cluster)
        self.boots = 1
        self.running: dict[str, tuple[str, ...]] = {}
        """Claims prepared in this boot and not unprepared: containers may use their devices."""

    @rule(name=claims, devices=st.lists(st.sampled_from(DEVICES), min_size=1, max_size=3, unique=True))
    def allocate(self, name: str, devices: list[str]) -> None:
        if name not in self.cluster.claims:
            self.cluster.allocate(name, given(*devices))

    @rule(name=claims)
    def delete(self, name: str) -> None:
        self.cluster.claims.pop(name, None)

    @rule(names=st.lists(claims, min_size=1, max_size=4))
    def prepare(self, names: list[str]) -> None:
        async def all_at_once() -> list[object]:
            calls = (self.node.driver.prepare(Asked("x", name, name)) for name in names)
            return await asyncio.gather(*calls, return_exceptions=True)

        for name, answer in zip(names, asyncio.run(all_at_once()), strict=True):
            if isinstance(answer, tuple):
                self.running[name] = tuple(each.device for each in answer)
                continue
            assert isinstance(answer, CorralError) and name not in self.running
            wanted = (
                {each.device for each in self.cluster.claims[name].given or ()}
                if name in self.cluster.claims
                else set()
            )
            held = {device for other, devices in self.node.held().items() if other != name for device in devices}
            assert isinstance(answer, NotFound) if not wanted else isinstance(answer, Conflict) and wanted & held

    @rule(name=claims)
    def unprepare(self, name: str) -> None:
        asyncio.run(self.node.driver.unprepare(Asked("x", name, name)))
        self.running.pop(name, None)

    @rule()
    def restart(self) -> None:
        self.node.restart()

    @rule()
    def reboot(self) -> None:
        self.boots += 1
        self.running.clear()
        shutil.rmtree(self.node.cdi, ignore_errors=True)
        self.node.restart(boot=f"boot-{self.boots}")

    @invariant()
    def each_device_has_one_claim(self) -> None:
        if not hasattr(self, "node"):
            return
        held = self.node.held()
        count = collections.Counter(device for devices in held.values() for device in devices)
        assert not [device for device, times in count.items() if times > 1]
        assert self.node.documents().keys() == held.keys()
        for name, devices in self.running.items():
            assert tuple(held[name]) == devices

    def teardown(self) -> None:
        if hasattr(self, "node"):
            self.node.ledger.close()
            shutil.rmtree(self.root)


OneNode.TestCase.settings = settings(max_examples=examples(100), stateful_step_count=30, deadline=None)
TestDevicesAreGivenOnce = OneNode.TestCase
