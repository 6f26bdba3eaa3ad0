"""Why: people write the kind of a document in many ways, and every door must understand the same ones."""

from __future__ import annotations

from typing import Final

KINDS: Final = ("Cluster", "Queue", "Policy", "Storage")
"""The kinds of configuration documents that are stored."""
VIRTUAL_CLUSTER: Final = "VirtualCluster"
"""Read as a Queue that owns cells, and stored as a Queue."""

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
"""What people write for a kind, in lower case."""


def kind_of(word: str) -> str:
    """The kind that a word means, in any case, singular or plural; "" when it is none."""
    return KIND_WORDS.get(word.lower(), "")
