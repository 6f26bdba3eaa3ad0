"""A bundle whose programs are a few bytes, and images that have an index alone."""

from __future__ import annotations

import io
import json
import struct
import tarfile
from pathlib import Path
from typing import Any, Final

from corral.deploy.steps.bundle import KUBERNETES, PLUGINS, RUNTIME

X86, ARM = 62, 183
DIGEST: Final = f"sha256:{'a' * 64}"
PROXY: Final = "registry.k8s.io/kube-proxy:v1.34.4"


def program(machine: int = X86, mark: bytes = b"") -> bytes:
    """The beginning of a program for this machine, as ELF numbers it."""
    return b"\x7fELF\x02\x01" + bytes(12) + struct.pack("<H", machine) + mark


def image(path: Path, *names: str, index: Any = None, digest: str = DIGEST) -> None:
    """Write an archive of images of these names."""
    notes = [{"digest": digest, "annotations": {"io.containerd.image.name": name}} for name in names]
    data = json.dumps({"manifests": notes} if index is None else index).encode()
    with tarfile.open(path, "w") as archive:
        entry = tarfile.TarInfo("./index.json")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))


def small_bundle(folder: Path) -> Path:
    """Write a bundle into a folder."""
    for part, names in (("bin", (*RUNTIME, *KUBERNETES)), ("cni", PLUGINS)):
        (folder / part).mkdir()
        for name in names:
            (folder / part / name).write_bytes(program(mark=name.encode()))
    (folder / "images").mkdir()
    image(folder / "images/proxy.tar", PROXY)
    image(folder / "images/etcd.tar", "registry.k8s.io/etcd:3.6.5-0")
    return folder
