"""Queues, virtual clusters and policies are documents of their own: many in one file, each error with its line."""

from __future__ import annotations

import json

import pytest

from corral.model.queue_specs import queue_spec
from corral.model.queues import CellQuota, QueueSpec, Reclaim, WithinQueue
from corral.spec.cluster import ClusterDocument, load_cluster
from corral.spec.configuration_file import identity, load_document
from corral.spec.errors import SpecError
from corral.spec.policy import PolicyDocument
from corral.spec.queue import QueueDocument
from corral.spec.quota_check import capacity, quota_findings

SITE = """
kind: Cluster
node: {cpu: 8, memory: 16Gi, devices: {count: 4, model: A100, cells: {pcie-switch: 2}}}
racks: {r1: {nodes: [n1, n2]}, r2: {nodes: [n3, n4]}}
---
kind: Queue
name: research
weight: 2
guaranteed: {devices: 2}
deserved: {devices: 6, cpu: 12.5, memory: 24Gi, devices/A100: 6}
limit: {devices: 12}
borrowingLimit: {devices: 4}
lendingLimit: {devices: 3}
userLimit: {devices: 4}
groupLimit: {devices: 8}
minRuntimeSeconds: 10m
preemption: {withinQueue: never, reclaim: lower-priority}
halfLifeSeconds: 7d
---
kind: VirtualCluster
name: vision
cells: [{level: node, model: A100, count: 2}]
---
kind: Policy
order: deadline
ageing: {secondsPerPriority: 10m}
elastic: {moveSeconds: 0}
"""


def test_one_file_holds_a_whole_site() -> None:
    cluster, research, vision, policy = load_document(SITE)
    assert [identity(each) for each in (cluster, research, vision, policy)] == [
        ("Cluster", "local"),
        ("Queue", "research"),
        ("Queue", "vision"),
        ("Policy", "default"),
    ]
    assert isinstance(cluster, ClusterDocument) and isinstance(policy, PolicyDocument)
    assert (policy.order, policy.ageing.seconds_per_priority, policy.elastic.move_seconds) == ("deadline", 600, 0)
    queues = [each for each in (research, vision) if isinstance(each, QueueDocument)]
    assert quota_findings(cluster, queues) == []


def test_the_scheduler_is_told_of_a_queue_in_whole_units() -> None:
    _, research, vision, _ = load_document(SITE)
    assert isinstance(research, QueueDocument) and isinstance(vision, QueueDocument)
    assert queue_spec(research) == QueueSpec(
        "research",
        weight=2.0,
        guaranteed={"devices": 2},
        deserved={"devices": 6, "cpu": 12_500, "memory": 24 * 2**30, "devices/A100": 6},
        limit={"devices": 12},
        borrowing_limit={"devices": 4},
        lending_limit={"devices": 3},
        user_limit={"devices": 4},
        group_limit={"devices": 8},
        min_runtime_seconds=600.0,
        within_queue=WithinQueue.NEVER,
        reclaim=Reclaim.LOWER_PRIORITY,
        half_life_seconds=7 * 86_400.0,
    )
    assert queue_spec(vision).cells == (CellQuota("node", 2, "A100"),)


def test_a_virtual_cluster_is_stored_as_a_queue_and_the_stored_form_reads_back_the_same() -> None:
    for document in load_document(SITE)[1:]:
        stored = document.to_json()
        (again,) = load_document(stored)
        assert again.to_json() == stored
        assert json.loads(stored)["kind"] in ("Queue", "Policy")


def test_equal_amounts_are_stored_in_equal_words() -> None:
    one, other = (
        load_document(f"{{kind: Queue, name: q, limit: {limit}}}")[0].to_json()
        for limit in ("{cpu: 1500m, memory: 2048Mi, devices: 4}", "{devices: '4', memory: 2Gi, cpu: 1.5}")
    )
    assert one == other


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "x.yaml: expected a document (Cluster, Queue, VirtualCluster, Policy, Storage, Prices), got nothing"),
        ("[1]", "x.yaml:1:1: expected a document (a mapping of fields), got a list"),
        (
            "name: q",
            "x.yaml:1:1: kind: expected one of Cluster, Queue, VirtualCluster, Policy, Storage, Prices; missing",
        ),
        (
            "kind: Queu",
            "x.yaml:1:7: kind: expected one of Cluster, Queue, VirtualCluster, Policy, Storage, Prices; "
            'got "Queu"; did you mean',
        ),
        ("kind: Queue", "x.yaml:1:1: name: missing"),
        (
            "kind: Queue\nname: a\n---\nkind: VirtualCluster\nname: a\npinnedCells: [p]",
            "x.yaml:5:7: name: Queue/a is already there",
        ),
        (
            "{kind: VirtualCluster, name: v}",
            "x.yaml:1:8: kind: a virtual cluster owns cells; write cells or pinnedCells, or kind: Queue",
        ),
        ("{kind: Queue, name: q, parent: q}", "x.yaml:1:32: parent: a queue cannot be part of itself"),
        (
            "{kind: Queue, name: q, limit: {gpus: 3}}",
            'x.yaml:1:31: limit: "gpus" is not a resource that queues divide',
        ),
        (
            "{kind: Queue, name: q, limit: {devices: 0.0005}}",
            "x.yaml:1:31: limit: devices: a device is divided into thousandths at most, such as 0.125, got 0.0005",
        ),
        (
            "{kind: Queue, name: q, limit: {devices: -1}}",
            "x.yaml:1:31: limit: devices: devices are written as 2 or 0.5, got -1",
        ),
        (
            "{kind: Queue, name: q, limit: {devices: 2}, deserved: {devices: 4}}",
            "x.yaml:1:65: deserved.devices: more than its limit of 2",
        ),
        (
            "{kind: Queue, name: q, deserved: {cpu: 1}, guaranteed: {cpu: 1500m}}",
            "x.yaml:1:62: guaranteed.cpu: more than the 1 it deserves",
        ),
        (
            "{kind: Queue, name: q, cells: [{count: 2}]}",
            "x.yaml:1:32: cells[0]: expected either level or cellType, got neither",
        ),
        (
            "{kind: Queue, name: q, cells: [{level: node, cellType: n}]}",
            "x.yaml:1:32: cells[0]: expected either level or cellType, got both",
        ),
        ("{kind: Queue, name: q, pinnedCells: [a, a]}", 'x.yaml:1:41: pinnedCells[1]: "a" is already there'),
        ("{kind: Policy, order: who is first}", "x.yaml:1:23: order: "),
        ("{kind: Policy, order: ''}", "x.yaml:1:23: order: "),
        ("{kind: Policy, preempt: [rules]}", "x.yaml:1:25: preempt: "),
        ("{kind: Policy, preset: a b}", "x.yaml:1:24: preset: "),
    ],
)
def test_a_document_that_cannot_be_is_refused(text: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_document(text, filename="x.yaml")
    assert str(caught.value).splitlines()[0].startswith(said)


def queues(text: str) -> list[QueueDocument]:
    return [each for each in load_document(text) if isinstance(each, QueueDocument)]


@pytest.mark.parametrize(
    ("text", "path", "said"),
    [
        ("{kind: Queue, name: a, parent: b}", ("queues", "a", "parent"), 'no queue is called "b"'),
        (
            "{kind: Queue, name: a, parent: b}\n---\n{kind: Queue, name: b, parent: a}",
            ("queues", "a", "parent"),
            "a queue cannot be part of itself",
        ),
        (
            "{kind: Queue, name: a, guaranteed: {devices: 3}}"
            "\n---\n{kind: Queue, name: b, parent: a, guaranteed: {devices: 2}}"
            "\n---\n{kind: Queue, name: c, parent: a, guaranteed: {devices: 2}}",
            ("queues", "a", "guaranteed", "devices"),
            "its children are promised 4 together (guaranteed), more than these 3",
        ),
        (
            "{kind: Queue, name: a, limit: {devices: 3}}\n---\n{kind: Queue, name: b, parent: a}"
            "\n---\n{kind: Queue, name: c, parent: b, deserved: {devices: 4}}",
            ("queues", "a", "limit", "devices"),
            "its children are promised 4 together (deserved), more than these 3",
        ),
        (
            "{kind: Queue, name: a, deserved: {devices: 10}}\n---\n{kind: Queue, name: b, guaranteed: {devices: 7}}",
            ("queues", "b", "deserved", "devices"),
            "with it queues are promised 17 of devices (deserved), and the cluster has 16",
        ),
        (
            "{kind: Queue, name: a, guaranteed: {memory: 65Gi}}",
            ("queues", "a", "guaranteed", "memory"),
            "with it queues are promised 65Gi of memory (guaranteed), and the cluster has 64Gi",
        ),
        (
            "{kind: Queue, name: a, deserved: {devices/H100: 1}}",
            ("queues", "a", "deserved", "devices/H100"),
            "with it queues are promised 1 of devices/H100 (deserved), and the cluster has 0",
        ),
        (
            "{kind: Queue, name: a, cells: [{level: rack, count: 2}]}\n---\n{kind: Queue, name: b, cells: [{level: rack}]}",
            ("queues", "b", "cells", 0),
            "with it queues own 3 cells (rack), and the cluster has 2",
        ),
        (
            "{kind: Queue, name: a, cells: [{level: nod}]}",
            ("queues", "a", "cells", 0),
            'the cluster has no nod; did you mean "node"?',
        ),
        (
            "{kind: Queue, name: a, pinnedCells: [p]}",
            ("queues", "a", "pinnedCells", 0),
            'no cell is pinned as "p"',
        ),
        (
            "{kind: Queue, name: a, pinnedCells: [p]}\n---\n{kind: Queue, name: b, pinnedCells: [p]}",
            ("queues", "b", "pinnedCells", 0),
            '"p" already belongs to the queue a',
        ),
    ],
)
def test_quotas_that_do_not_add_up_are_told_with_the_numbers(text: str, path: tuple[object, ...], said: str) -> None:
    """H2's first half: promised cells are checked against the machines before a document is applied."""
    cluster = load_document(SITE)[0]
    assert isinstance(cluster, ClusterDocument)
    assert (path, said) in quota_findings(cluster, queues(text))


@pytest.mark.parametrize("bound", ["guaranteed", "deserved", "limit"])
@pytest.mark.parametrize("promise", ["guaranteed", "deserved"])
def test_children_may_be_promised_together_exactly_what_their_parent_has(bound: str, promise: str) -> None:
    parent = f"{{kind: Queue, name: a, {bound}: {{devices: 4, memory: 8Gi}}}}"
    children = "".join(
        f"\n---\n{{kind: Queue, name: {name}, parent: a, {promise}: {{devices: {devices}, memory: 4Gi}}}}"
        for name, devices in (("b", 1.5), ("c", 2.5))
    )
    assert quota_findings(None, queues(parent + children)) == []


def test_a_cluster_that_describes_no_machine_bounds_no_quota() -> None:
    as_found = load_cluster("kind: Cluster")
    assert capacity(as_found) == {}
    assert (
        quota_findings(as_found, queues("{kind: Queue, name: a, guaranteed: {devices: 1000}, cells: [{level: rack}]}"))
        == []
    )


def test_quotas_of_queues_inside_a_cluster_document_are_checked_too() -> None:
    with pytest.raises(SpecError, match=r"queues\.a\.limit\.devices: its children are promised 4"):
        load_cluster("queues: {a: {limit: {devices: 3}}, b: {parent: a, deserved: {devices: 4}}}")
