"""Checks across all documents, and the canonical text in which each is stored."""

from __future__ import annotations

import json

import pytest
import yaml

from corral.kernel.kinds import kind_of
from corral.model.configuration import canonical, configuration_of, to_document
from corral.spec.cluster import ClusterDocument
from corral.spec.configuration_file import load_document
from corral.spec.queue import QueueDocument

DOCUMENTS = {
    "one rack": "kind: Cluster\nnode: {cpu: 4, devices: 4}\nracks: {rack1: {nodes: [node1, node2]}}\n",
    "nodes of their own": "kind: Cluster\nnode: {devices: 8}\nnodes: {a: {devices: 2}, b: {cpu: 1}, c: {}}\n",
    "labels": 'kind: Cluster\nnodes: {a: {labels: {zone: "1", on: "yes"}}}\n',
    "a range": "kind: Cluster\nnode: {devices: 8}\nracks: {'rack[1-2]': {nodes: ['node[001-032]']}}\n",
    "queues": "kind: Cluster\nnodes: [a]\nqueues: {research: {weight: 2, limit: {devices: 4}}}\n",
    "a queue": "kind: Queue\nname: research\nweight: 2\nlimit: {devices: 4, memory: 1024Gi, cpu: 500m}\n",
    "a virtual cluster": "kind: VirtualCluster\nname: vision\ncells: [{level: node, model: H100, count: 2}]\n",
    "a policy": "kind: Policy\norder: fair\nbackfill: false\n",
}


@pytest.mark.parametrize("text", DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_document_that_is_stored_shown_edited_and_applied_again_is_the_same(text: str) -> None:
    (document,) = load_document(text)
    stored = canonical(document)
    (read,) = load_document(json.loads(stored))
    assert canonical(read) == stored
    (shown,) = load_document(yaml.safe_dump(to_document(document), sort_keys=False))
    assert canonical(shown) == stored
    if isinstance(document, ClusterDocument) and isinstance(shown, ClusterDocument):
        assert shown.nodes == document.nodes and shown.queues == document.queues


def test_writing_alone_makes_no_other_document() -> None:
    first, second = ("kind: Queue\nname: a\nlimit: {memory: 1Ti}\n", "name: a\nlimit:\n  memory: 1024Gi\nkind: Queue\n")
    assert canonical(load_document(first)[0]) == canonical(load_document(second)[0])


def test_what_is_at_its_default_is_not_shown() -> None:
    (document,) = load_document("kind: Queue\nname: research\nweight: 1\nlimit: {devices: 4}\n")
    assert to_document(document) == {
        "apiVersion": "corral.dev/v1alpha1",
        "kind": "Queue",
        "name": "research",
        "limit": {"devices": "4"},
    }


def test_a_queue_document_takes_the_place_of_the_one_in_the_cluster() -> None:
    cluster = "kind: Cluster\nnodes: [a]\nqueues: {research: {weight: 2}, other: {}}\n"
    found = configuration_of(load_document(f"{cluster}---\nkind: Queue\nname: research\nweight: 5\n"))
    assert {name: queue.weight for name, queue in found.queues.items()} == {"default": 1, "other": 1, "research": 5}
    assert [record.name for record in found.queue_records()] == ["default", "other", "research"]
    assert [spec.name for spec in found.queue_specs()] == ["default", "other", "research"]


def test_the_queue_default_is_always_there_and_can_be_written() -> None:
    assert set(configuration_of([]).queues) == {"default"}
    own = configuration_of([QueueDocument(name="default", weight=3)])
    assert own.queues["default"].weight == 3
    inside = configuration_of(load_document("kind: Cluster\nnodes: [a]\nqueues: {default: {weight: 4}}\n"))
    assert inside.queues["default"].weight == 4


def test_the_policy_called_default_is_the_one_in_force() -> None:
    text = "kind: Policy\nname: night\norder: fifo\n"
    assert configuration_of(load_document(text)).policy is None
    found = configuration_of(load_document(f"{text}---\nkind: Policy\norder: fair\n")).policy
    assert found is not None and found.order == "fair"


def test_quotas_are_held_against_the_described_machines_only() -> None:
    greedy = "kind: Queue\nname: greedy\ndeserved: {devices: 9}\n"
    described = "kind: Cluster\nnode: {devices: 4}\nnodes: [a, b]\n"
    ((path, said),) = configuration_of(load_document(f"{described}---\n{greedy}")).findings()
    assert path == ("queues", "greedy", "deserved", "devices") and "9" in said and "8" in said
    assert configuration_of(load_document(f"kind: Cluster\n---\n{greedy}")).findings() == []


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("queue", "Queue"),
        ("Queues", "Queue"),
        ("VirtualCluster", "Queue"),
        ("policies", "Policy"),
        ("clusters", "Cluster"),
    ],
)
def test_a_kind_is_understood_in_any_case_and_number(word: str, kind: str) -> None:
    assert kind_of(word) == kind and kind_of(word.upper()) == kind


@pytest.mark.parametrize("word", ["", "job", "quue", "queue/x"])
def test_another_word_is_no_kind(word: str) -> None:
    assert kind_of(word) == ""
