"""What the file of a bundle has: each of its files with size, hash, version and licence."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from corral.kernel.errors import InvalidInput

KIND: Final = "Bundle"
_VERSION: Final = 1
MANIFEST: Final = "manifest.json"
"""The first member of the archive."""
MOST_MANIFEST: Final = 4 * 1024 * 1024
WHEELS: Final = "wheels"
"""The folder of Corral's own programs for people's machines; no host is sent them."""
FOLDERS: Final = ("bin", "cni", "images", "packages", "charts", "hadoop", WHEELS)
MOST_FILES: Final = 2000
MOST_BYTES: Final = 16 * 1024**3
"""Bytes of one file, and of all together."""
_PATH: Final = re.compile(rf"({'|'.join(FOLDERS)})/[A-Za-z0-9][A-Za-z0-9.+_~%:-]{{0,200}}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_WHEN: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_PACKAGE: Final = re.compile(r"[^_]+_([^_]+)_[^_]+\.deb")
_WHEEL: Final = re.compile(r"[^-]+-([^-]+)-.+\.whl")
_APACHE: Final = "Apache-2.0"
_LICENCES: Final = dict.fromkeys(
    (
        "containerd", "containerd-shim-runc-v2", "ctr", "runc", "kubeadm", "kubectl", "kubelet", "helm", "bridge",
        "flannel", "host-local", "loopback", "portmap", "kube-apiserver", "kube-controller-manager", "kube-scheduler",
        "kube-proxy", "etcd", "coredns", "pause", "prometheus", "alertmanager", "node-exporter",
    ),
    _APACHE,
) | {"postgres": "PostgreSQL", "busybox": "GPL-2.0-only", "corral": "MIT", "corral.tgz": "MIT"}  # fmt: skip
"""The licences of programs and images by their usual names, in SPDX's words."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a bundle."""

    size: int
    digest: str
    """SHA-256 in hexadecimal."""
    version: str = ""
    """What its name, or the tags of its images, say; "" where nothing does."""
    licence: str = ""
    images: tuple[str, ...] = ()

    def to_document(self) -> dict[str, Any]:
        """The entry as the manifest has it."""
        told = {"version": self.version, "licence": self.licence, "images": list(self.images)}
        return {"size": self.size, "sha256": self.digest, **{name: value for name, value in told.items() if value}}


@dataclass(frozen=True, slots=True)
class BundleManifest:
    """All files of a bundle by their paths, for one architecture."""

    architecture: str
    """"" where it has Hadoop alone, which is of none."""
    made: str
    """When, in UTC."""
    files: Mapping[str, Entry]

    def text(self) -> bytes:
        """The manifest as the archive has it."""
        document = {
            "kind": KIND, "version": _VERSION, "architecture": self.architecture, "made": self.made,
            "files": {path: entry.to_document() for path, entry in self.files.items()},
        }  # fmt: skip
        return json.dumps(document, indent=1).encode()


def is_path(path: str) -> bool:
    """Whether a file of a bundle may have this path."""
    return _PATH.fullmatch(path) is not None


def version_of(path: str, images: tuple[str, ...]) -> str:
    """The version that the name of a package or of a wheel says, or the tags of images."""
    if images:
        return ", ".join(dict.fromkeys(name.rpartition("/")[2].partition(":")[2] for name in images))
    name = path.rpartition("/")[2]
    found = _PACKAGE.fullmatch(name) or _WHEEL.fullmatch(name)
    return found[1].replace("%3a", ":") if found else ""


def licence_of(path: str, images: tuple[str, ...]) -> str:
    """The licence of a program, or of images, as far as it is known."""
    names = [name.rpartition("/")[2].partition(":")[0] for name in images] or [path.rpartition("/")[2]]
    return ", ".join(dict.fromkeys(_LICENCES[name] for name in names if name in _LICENCES))


def manifest_of(text: bytes) -> BundleManifest:
    """Read a manifest. Raises InvalidInput."""
    try:
        found = json.loads(text)
        if not isinstance(found, dict) or found.get("kind") != KIND:
            raise ValueError("it is of another kind")
        if found.get("version") != _VERSION:
            raise ValueError("another version of Corral wrote it")
        architecture, made, files = found["architecture"], found["made"], found["files"]
        if architecture not in ("x86_64", "aarch64", ""):
            raise ValueError("its architecture is odd")
        if not (isinstance(made, str) and _WHEN.fullmatch(made)):
            raise ValueError("its time is odd")
        if not isinstance(files, dict) or not 0 < len(files) <= MOST_FILES:
            raise ValueError(f"it has not 1 to {MOST_FILES} files")
        read = {path: _entry(path, each) for path, each in files.items()}
        if sum(each.size for each in read.values()) > MOST_BYTES:
            raise ValueError(f"its files are larger than {MOST_BYTES >> 30} GiB")
        return BundleManifest(architecture, made, read)
    except (ValueError, KeyError, RecursionError) as error:
        raise InvalidInput("odd-bundle", f"The bundle has no manifest that can be read: {error}.") from None


def _entry(path: str, found: Any) -> Entry:
    if not is_path(path):
        raise ValueError("the path of a file is odd")
    size, digest = (found.get("size"), found.get("sha256")) if isinstance(found, dict) else (None, None)
    if not (
        isinstance(size, int) and 0 <= size <= MOST_BYTES and isinstance(digest, str) and _DIGEST.fullmatch(digest)
    ):
        raise ValueError(f"what it says of {path} is odd")
    return Entry(size, digest)
