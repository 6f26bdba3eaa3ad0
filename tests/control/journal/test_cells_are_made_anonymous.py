"""Under the preset `hived`, and with pinned cells, an anonymised journal has no name of a cell and decides the same."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.control.core.configuration import Configured, planner_settings
from corral.control.journal.anonymous.documents import anonymous_documents
from corral.control.journal.anonymous.names import Found, Names, Renamed
from corral.control.journal.blocks import BlockReader
from corral.control.journal.records import Begun, configured, decoded
from corral.control.journal.replay import replay
from corral.control.journal.rules import Rules
from corral.devices.described import described_inventory
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import JobId
from corral.model.configuration import configuration_of
from corral.model.inventory import Inventory
from corral.scheduler.planners.hived.pod_mapping import MARK as HIVED
from corral.spec.cluster import ClusterDocument
from corral.spec.configuration_file import load_site
from tests.control.journal.named import MARK, Named
from tests.control.journal.test_a_journal_is_made_anonymous import KEY, anonymous, shape, steps_of
from tests.examples import examples


class NamedCells(Named):
    """Jobs in virtual clusters that own cells of two chains, some of them pinned, all with names drawn from a seed."""

    def __init__(self, seed: int, preset: str) -> None:
        self.preset = preset
        self.pins: list[str] = []
        super().__init__(seed, "fair")

    def add(self, at: float, seconds: float, **more: Any) -> JobId:
        """Have a job be submitted that has a text in every field that HiveD knows."""
        unknown: dict[str, Any] = (
            {"sharing": {}, "topology": {}, "speeds": {}, "nodes": {}} if self.preset == "hived" else {}
        )
        return super().add(at, seconds, **unknown, **more)

    def _machines(self) -> Inventory:
        self.cluster = self._cluster()
        return described_inventory(self.cluster, self.engine)

    def _cluster(self) -> ClusterDocument:
        """Racks that are written as ranges and one by one, machines of another chain, and a node of two cells."""
        name = self.name
        self.rack, self.box, self.old, socket, tray = (f"{name()}-{each}" for each in ("R", "B", "O", "S", "T"))
        self.half, other = f"{name()}-H", f"{name()}-I"
        self.pins = [name() for _ in range(4)]
        host, both = self.name(), self.name()
        node = {"cpu": "64", "memory": "256Gi", "labels": {self.label: self.value, "tier": "7"}}
        rack: dict[str, Any] = {"type": self.rack, "name": name(), "pinned": self.pins[0]}
        rack["children"] = [{"name": name()} for _ in range(2)]
        old: dict[str, Any] = {"type": self.old, "name": name(), "devices": [4, 5, 6, 7], "pinned": self.pins[1]}
        halves = [
            {"type": self.half, "name": both, "devices": [2, 3]},
            {"type": other, "name": both, "devices": [0, 1], "pinned": self.pins[3]},
        ]
        parts = {"type": self.old, "name": name(), "children": [{}, {"pinned": self.pins[2]}]}
        made = {
            "kind": "Cluster",
            "engine": self.engine,
            "cellTypes": {
                socket: {"child": self.model, "count": 2},
                self.box: {"child": socket, "count": 2, "node": node},
                self.rack: {"child": self.box, "count": 2, "level": self.level},
                tray: {"child": self.model, "count": 2, "level": "numa"},
                self.old: {"child": tray, "count": 2, "node": node},
                self.half: {"child": self.model, "count": 2, "node": node},
                other: {"child": self.model, "count": 2, "node": node},
            },
            "cells": [
                {"type": self.rack, "nodes": [f"{host}[9-12]"], "name": f"{name()}[1-2]"},
                rack,
                old,
                parts,
                *halves,
            ],
        }
        (read,) = load_site(json.dumps({"apiVersion": "corral.dev/v1alpha1", **made}), filename="site.yaml")
        assert isinstance(read, ClusterDocument)
        return read

    def _configured(self, policy: str) -> Configured:
        owned: list[dict[str, Any]] = [
            {"cells": [{"cellType": self.rack}], "pinnedCells": self.pins[:1]},
            {"cells": [{"cellType": f"{self.rack}.{self.box}", "count": 2}], "pinnedCells": self.pins[1:2]},
            {"cells": [{"cellType": self.half}], "pinnedCells": self.pins[2:]},
        ]
        documents = [{"kind": "Queue", "name": name, **own} for name, own in zip(self.queues, owned, strict=True)]
        documents.append({"kind": "Policy", "name": "default", "preset": self.preset})
        texts = [json.dumps({"apiVersion": "corral.dev/v1alpha1", **each}) for each in documents]
        now = configuration_of([self.cluster, *load_site("\n---\n".join(texts), filename="site.yaml")], 7)
        chosen = Rules(policy).chosen(now)
        return Configured(chosen, now, planner_settings(chosen, now))


def lived(seed: int, preset: str) -> NamedCells:
    """A journal in which cells are owned, lent and taken back, and pinned cells are asked for."""
    played = NamedCells(seed, preset)
    for devices in (1, 2, 4, 4, 3, 1, 4, 2):
        at, seconds = played.draw.uniform(0, 400), played.draw.uniform(5, 900)
        played.add(at, seconds, devices=devices, priority=played.draw.choice(["oppo", "test", "prod"]))
    for queue, pin in zip([*played.queues, played.queues[-1]], played.pins, strict=True):
        played.add(played.draw.uniform(0, 300), 200.0, devices=2, queue=queue, pinnedCell=pin)
    played.add(410.0, 50.0, devices=2, replicas=4, priority="prod")
    played.run(450.0)
    played.disturb()
    played.begin_again()
    played.run(900.0)
    played.begin_again()
    played.run(4000.0)
    return played


def started(file: bytes) -> int:
    """How often a task was started."""
    return sum(each.verb == "start" for step in steps_of(file) for each in step.decisions)


@settings(max_examples=examples(8))
@given(seed=st.integers(0, 100_000), preset=st.sampled_from(["hived", "fair", "priority"]))
def test_no_name_of_a_cell_is_left_and_every_decision_is_equal(seed: int, preset: str) -> None:
    played = lived(seed, preset)
    file, differs_from = anonymous(played)
    plain = played.file.getvalue()
    for pin in played.pins:
        assert pin.encode() in b"".join(BlockReader(io.BytesIO(plain)))
    for record in BlockReader(io.BytesIO(file)):
        assert MARK.encode() not in record.lower()
    assert differs_from is None and started(plain) == started(file) > 5
    found = replay(io.BytesIO(file))
    assert (found.difference, found.problem, found.steps) == (None, "", played.journal.number)
    assert list(map(shape, steps_of(file))) == list(map(shape, steps_of(plain)))


def test_what_hived_binds_is_found_again_under_new_names() -> None:
    file, _ = anonymous(lived(5, "hived"))
    states = [each.state for each in map(decoded, BlockReader(io.BytesIO(file))) if isinstance(each, Begun)]
    running = [task for job in states[-1].jobs for task in job.tasks.values() if task.placement is not None]
    cells = [task.placement.cells for task in running if task.placement is not None]
    assert {each[0] for each in cells} == {HIVED} and {each[1].partition("-")[0] for each in cells} == {"chain"}
    assert {each.partition("-")[0] for bound in cells for each in bound[2:]} <= {"", "chain", "model", "pinned"}


def test_the_cells_are_written_as_they_were() -> None:
    played = NamedCells(3, "hived")
    before = played._configured("fair")
    read = anonymous_documents(Names(Found()), before)
    after = configured(read, Rules("fair"))
    (own,), (made,) = before.now.clusters.values(), after.now.clusters.values()
    assert own.machines.pinned == made.machines.pinned and own.machines.types == made.machines.types
    assert [(node.name, node.cells, node.devices) for node in own.nodes] == [
        (node.name, node.cells, node.devices) for node in made.nodes
    ]
    assert before.now.queue_specs() == after.now.queue_specs()
    assert before.now.hived() == after.now.hived()


SHARED = """
kind: Cluster
cellTypes: {half: {child: gpu, count: 2, node: true}}
cells: [{type: half, name: n, devices: 0-1, pinned: a}, {type: half, name: n, devices: 2-3}]
---
{kind: Queue, name: q, cells: [{cellType: half}], pinnedCells: [a]}
"""


def again(text: str) -> None:
    """Make the documents of a site anonymous."""
    now = configuration_of(load_site(text, filename="site.yaml"), 8)
    found = Found()
    anonymous_documents(Names(found), Configured(Rules().chosen(now), now))
    anonymous_documents(Names(Renamed(KEY, found)), Configured(Rules().chosen(now), now))


def test_types_with_one_level_of_which_several_cells_describe_a_node_are_refused_in_one_sentence() -> None:
    again(SHARED)
    two = SHARED.replace("node: true}}", "node: true}, Half: {child: gpu, count: 2, node: true}}")
    two = two.replace("pinned: a}, {type: half", "pinned: a}, {type: Half")
    with pytest.raises(InvalidInput, match="The cells of queue q cannot be made anonymous: several types of cells"):
        again(two)
