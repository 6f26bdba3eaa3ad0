"""The kinds of configuration documents, and the spellings that are accepted for them."""

from __future__ import annotations

from typing import Final

KINDS: Final = ("Cluster", "Queue", "Policy", "Storage")
"""The kinds of configuration documents that are stored."""
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
}
"""Accepted spellings of each kind, in lower case."""


def kind_of(word: str) -> str:
    """The kind that a word stands for, in any case, singular or plural; "" if none."""
    return KIND_WORDS.get(word.lower(), "")
