"""What a backup of a cluster has: its parts with their hashes, and the cluster that it is of."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from corral.kernel.errors import InvalidInput

KIND: Final = "ClusterBackup"
_VERSION: Final = 1
MANIFEST: Final = "manifest.json"
"""The first member of the archive."""
MOST_MANIFEST: Final = 64 * 1024
STORE, KEY = "store.db", "corral.key"
PARTS: Final = (
    STORE, KEY, "portal.pem", "pki/ca.crt", "pki/ca.key", "pki/sa.key", "pki/sa.pub", "pki/front-proxy-ca.crt",
    "pki/front-proxy-ca.key", "pki/etcd/ca.crt", "pki/etcd/ca.key",
)  # fmt: skip
"""Corral's store and the key of its secrets; the portal's key and certificate; the authorities of Kubernetes."""
NAME_NODE: Final = "hdfs/name.tar"
HDFS: Final = (NAME_NODE,)
"""The image of HDFS' NameNode with the edits since then."""
_SETS: Final = (PARTS, HDFS, (*PARTS, *HDFS))
"""The parts that a backup may have: those of Corral, those of HDFS, or both."""
MOST_BYTES: Final = 64 * 1024**3
_MOST_TEXT: Final = 1024 * 1024
"""Bytes of any other part than the store and the image."""
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_WHEN: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a backup: its size in bytes and its SHA-256."""

    size: int
    digest: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup is of, and its parts by name."""

    cluster: str
    made: str
    """When, in UTC."""
    parts: Mapping[str, Part]

    @property
    def has_corral(self) -> bool:
        """Whether Corral's store is in it."""
        return STORE in self.parts

    @property
    def has_hdfs(self) -> bool:
        """Whether the NameNode's image is in it."""
        return NAME_NODE in self.parts

    def text(self) -> bytes:
        """The manifest as the archive has it."""
        parts = {name: {"size": part.size, "sha256": part.digest} for name, part in self.parts.items()}
        document = {"kind": KIND, "version": _VERSION, "cluster": self.cluster, "made": self.made, "parts": parts}
        return json.dumps(document, indent=1).encode()


def most_of(name: str) -> int:
    """The bytes that a part may have."""
    return MOST_BYTES if name in (STORE, NAME_NODE) else _MOST_TEXT


def manifest_of(text: bytes) -> Manifest:
    """Read a manifest. Raises InvalidInput."""
    try:
        found = json.loads(text)
        if not isinstance(found, dict) or found.get("kind") != KIND:
            raise ValueError("it is of another kind")
        if found.get("version") != _VERSION:
            raise ValueError("another version of Corral wrote it")
        made, cluster, parts = found["made"], found["cluster"], found["parts"]
        if not (isinstance(cluster, str) and 0 < len(cluster) < 100 and cluster.isprintable()):
            raise ValueError("its cluster has an odd name")
        if not (isinstance(made, str) and _WHEN.fullmatch(made)):
            raise ValueError("its time is odd")
        return Manifest(cluster, made, {name: _part(name, parts[name]) for name in _names(parts)})
    except (ValueError, KeyError, RecursionError) as error:
        raise InvalidInput("odd-backup", f"The backup has no manifest that can be read: {error}.") from None


def _names(parts: Any) -> tuple[str, ...]:
    for names in _SETS if isinstance(parts, dict) else ():
        if set(parts) == set(names):
            return names
    raise ValueError("its parts are not those of a backup")


def _part(name: str, found: Any) -> Part:
    size, digest = (found.get("size"), found.get("sha256")) if isinstance(found, dict) else (None, None)
    if not (
        isinstance(size, int) and 0 < size <= most_of(name) and isinstance(digest, str) and _DIGEST.fullmatch(digest)
    ):
        raise ValueError(f"what it says of {name} is odd")
    return Part(size, digest)
