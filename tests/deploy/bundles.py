"""A bundle whose programs are a few bytes, and images that have an index alone."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import tarfile
import zipfile
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


def deb(path: Path, copyright_text: str | None, packed: str = "xz") -> None:
    """Write a Debian package whose data has this copyright file; with None a link to that of another package."""
    data = io.BytesIO()
    by_python = packed if packed != "zst" else ""
    with tarfile.open(fileobj=data, mode=f"w:{by_python}" if by_python else "w") as archive:  # type: ignore[call-overload]
        tool = tarfile.TarInfo("./usr/bin/tool")
        tool.size = 100_000
        archive.addfile(tool, io.BytesIO(bytes(tool.size)))
        entry = tarfile.TarInfo("./usr/share/doc/tool/copyright")
        if copyright_text is None:
            entry.type, entry.linkname = tarfile.SYMTYPE, "../common/copyright"
        content = (copyright_text or "").encode()
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    files = data.getvalue()
    if packed == "zst":
        files = subprocess.run(["zstd", "-q", "-c"], input=files, stdout=subprocess.PIPE, check=True).stdout
    parts = {
        "debian-binary": b"2.0\n",
        "control.tar.xz": b"odd",
        f"data.tar{f'.{packed}' if packed else ''}": files,
    }
    whole = b"!<arch>\n"
    for name, content in parts.items():
        whole += (
            f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
            + content
            + b"\n" * (len(content) % 2)
        )
    path.write_bytes(whole)


def wheel(path: Path, *header: str) -> None:
    """Write a wheel whose METADATA has these lines besides its name."""
    name, version = path.name.split("-")[:2]
    with zipfile.ZipFile(path, "w") as archive:
        lines = ("Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}", *header, "", "License: of its text")
        archive.writestr(f"{name}-{version}.dist-info/METADATA", "\n".join(lines))
