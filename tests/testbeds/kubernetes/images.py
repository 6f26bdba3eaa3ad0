"""Write container images (layer, configuration, manifest in OCI's layout) without a registry."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.testbeds.docker import static_busybox
from tests.testbeds.kubernetes.binaries import program

BUSYBOX: Final = "corral.test/busybox:1"
PAUSE: Final = "corral.test/pause:1"
_APPLETS: Final = (
    "sh", "cat", "chmod", "cp", "cut", "date", "dd", "echo", "env", "false", "find", "grep", "head", "hostname", "id",
    "ip", "kill", "ln", "ls", "mkdir", "mkfifo", "mv", "nc", "ps", "pwd", "rm", "sed", "seq", "sleep", "sort", "stat",
    "tail", "tar", "test", "touch", "tr", "true", "tty", "uname", "wc", "wget",
)  # fmt: skip


def busybox_image(path: Path) -> None:
    """Write the image `BUSYBOX`: a shell and the commands that scripts use."""
    busybox = static_busybox()
    assert busybox is not None, "busybox-static is not installed"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for folder, mode in (("bin", 0o755), ("etc", 0o755), ("proc", 0o755), ("tmp", 0o1777), ("root", 0o700)):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            tar.addfile(entry)
        tar.add(busybox, "bin/busybox")
        for applet in _APPLETS:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    _write_image(path, BUSYBOX, packed.getvalue(), command=["sh"])


def pause_image(path: Path) -> None:
    """Write the image `PAUSE`, which every pod's sandbox runs."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(program("pause"), "pause")
    _write_image(path, PAUSE, packed.getvalue(), command=["/pause"])


def tree_image(
    path: Path,
    name: str,
    tree: Path,
    *,
    entrypoint: Sequence[str] = (),
    command: Sequence[str] = ("sh",),
    env: Mapping[str, str] | None = None,
) -> None:
    """Write the image `name` with all files under `tree`."""
    layer = path.with_suffix(".layer")
    try:
        subprocess.run(["tar", "--numeric-owner", "-C", str(tree), "-cf", str(layer), "."], check=True)
        _write_image(path, name, layer, entrypoint=entrypoint, command=command, env=env)
    finally:
        layer.unlink(missing_ok=True)


def _write_image(
    path: Path,
    name: str,
    layer: bytes | Path,
    *,
    entrypoint: Sequence[str] = (),
    command: Sequence[str],
    env: Mapping[str, str] | None = None,
) -> None:
    variables = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"} | dict(env or {})
    digest = _digest(layer)
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "Entrypoint": list(entrypoint),
            "Cmd": list(command),
            "Env": [f"{key}={value}" for key, value in variables.items()],
        },
        "rootfs": {"type": "layers", "diff_ids": [digest]},
    }
    with tarfile.open(path, "w") as tar:
        kind = "application/vnd.oci.image."
        layers = [_add_blob(tar, layer, digest, kind + "layer.v1.tar")]
        described = _add_json(tar, config, kind + "config.v1+json")
        manifest = {"schemaVersion": 2, "mediaType": kind + "manifest.v1+json", "config": described, "layers": layers}
        entry = _add_json(tar, manifest, kind + "manifest.v1+json")
        entry["annotations"] = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
        index = {"schemaVersion": 2, "mediaType": kind + "index.v1+json", "manifests": [entry]}
        _add(tar, "index.json", json.dumps(index).encode())
        _add(tar, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')


def _add_json(tar: tarfile.TarFile, value: Any, kind: str) -> dict[str, Any]:
    data = json.dumps(value).encode()
    return _add_blob(tar, data, _digest(data), kind)


def _add_blob(tar: tarfile.TarFile, data: bytes | Path, digest: str, kind: str) -> dict[str, Any]:
    name = f"blobs/{digest.replace(':', '/')}"
    if isinstance(data, Path):
        tar.add(data, name)
        return {"mediaType": kind, "digest": digest, "size": data.stat().st_size}
    _add(tar, name, data)
    return {"mediaType": kind, "digest": digest, "size": len(data)}


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data))


def _digest(data: bytes | Path) -> str:
    if isinstance(data, bytes):
        return f"sha256:{hashlib.sha256(data).hexdigest()}"
    with data.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
