"""The kinds of configuration documents, and the spellings that are accepted for them."""

from __future__ import annotations

from typing import Final

KINDS: Final = ("Cluster", "Queue", "Policy", "Storage", "Prices")
"""The kinds of configuration documents that are stored."""
UNSCHEDULED: Final = frozenset({"Storage", "Prices"})
"""The kinds that no scheduling decision depends on: their changes break no guarantee."""
VIRTUAL_CLUSTER: Final = "VirtualCluster"
"""A document kind that is read as a Queue with cells, and stored as a Queue."""

KIND_WORDS: Final = {
    "cluster": "Cluster",
    "clusters": "Cluster",
    "queue": "Queue",
    "queues": "Queue",
    "virtualcluster": "Queue",
    "virtualclusters": "Queue",
    "vc": "Queue",
    "policy": "Policy",
    "policies": "Policy",
    "storage": "Storage",
    "storages": "Storage",
    "price": "Prices",
    "prices": "Prices",
}
"""Accepted spellings of each kind, in lower case."""


def kind_of(word: str) -> str:
    """The kind that a word stands for, in any case, singular or plural; "" if none."""
    return KIND_WORDS.get(word.lower(), "")
