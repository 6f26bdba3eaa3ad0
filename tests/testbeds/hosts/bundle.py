"""A bundle for `corral deploy up`: the programs that the test cache has, and images of them, made once and kept there."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from corral.deploy.steps import files, flannel
from corral.deploy.steps.bundle import PLUGINS, RUNTIME
from tests.testbeds.hosts import roots
from tests.testbeds.kubernetes import binaries, images, kubelet
from tests.testbeds.kubernetes.binaries import program

VERSION: Final = "1.34.4"
_CONTROL_PLANE: Final = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
_FORM: Final = 1
"""Counts the changes of what is made below, so that each makes a new bundle."""
_LIBRARIES: Final = "usr/lib/x86_64-linux-gnu"
_OF_TABLES: Final = ("libxtables.so.12", "libmnl.so.0", "libnftnl.so.11", "libc.so.6", "libm.so.6")


def missing() -> str:
    """What a bundle lacks on this machine, "" when nothing."""
    return roots.missing() or kubelet.missing() or binaries.missing_compiler()


def bundle() -> Path:
    """The bundle's folder, complete or missing."""
    programs = {
        name: program(name) for name in ("containerd", "kubelet", "etcd", "kubeadm", "flanneld", "coredns", "pause")
    }
    pins = hashlib.sha256(repr((sorted(map(str, programs.values())), str(roots.root()), _FORM)).encode()).hexdigest()
    folder = roots.root().parent.parent / f"bundle-{pins[:16]}"
    with open(folder.parent / "bundle.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            scratch = Path(tempfile.mkdtemp(prefix=".bundle-", dir=folder.parent))
            try:
                _make(scratch)
                scratch.chmod(0o755)
                scratch.rename(folder)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    return folder


def _make(folder: Path) -> None:
    for part in ("bin", "cni", "images", "packages"):
        (folder / part).mkdir()
    for name in (*RUNTIME, "kubeadm", "kubectl", "kubelet"):
        _link(folder / "bin" / name, Path(shutil.which("runc") or "") if name == "runc" else program(name))
    for name in PLUGINS:
        _link(folder / "cni" / name, program("flannel") if name == "flannel" else Path("/usr/lib/cni", name))
    for package in roots.packages().iterdir():
        _link(folder / "packages" / package.name, package)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        _images(folder / "images", Path(scratch))


def _images(folder: Path, scratch: Path) -> None:
    for name in _CONTROL_PLANE:
        _image(folder, scratch, f"registry.k8s.io/{name}:v{VERSION}", f"usr/local/bin/{name}")
    _image(folder, scratch, "registry.k8s.io/etcd:3.6.5-0", "usr/local/bin/etcd")
    _image(folder, scratch, "registry.k8s.io/coredns/coredns:v1.12.1", "coredns")
    _image(folder, scratch, f"registry.k8s.io/kube-proxy:v{VERSION}", "usr/local/bin/kube-proxy", _packet_filter)
    _image(folder, scratch, flannel.IMAGE, "opt/bin/flanneld", _packet_filter)
    _image(folder, scratch, files.PAUSE, "pause")
    images.busybox_image(folder / "busybox.tar")


def _image(folder: Path, scratch: Path, name: str, path: str, more: Callable[[Path], None] | None = None) -> None:
    """Write an image with one program at this path."""
    file = Path(path).name
    tree = scratch / file
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    os.link(program(file), tree / path)
    if more is not None:
        more(tree)
    images.tree_image(folder / f"{file}.tar", name, tree, entrypoint=(f"/{path}",), command=())
    shutil.rmtree(tree)


def _packet_filter(tree: Path) -> None:
    """Add iptables and its extensions, as the hosts have them."""
    root = roots.root()
    libraries = tree / _LIBRARIES
    shutil.copytree(root / _LIBRARIES / "xtables", libraries / "xtables")
    for name in _OF_TABLES:
        shutil.copy(root / _LIBRARIES / name, libraries / name)
    (tree / "usr/sbin").mkdir(parents=True)
    shutil.copy(root / "usr/sbin/xtables-nft-multi", tree / "usr/sbin")
    for name in ("iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"):
        (tree / "usr/sbin" / name).symlink_to("xtables-nft-multi")
    for name in ("sbin", "lib", "lib64"):
        (tree / name).symlink_to(f"usr/{name}")
    (tree / "usr/lib64").mkdir()
    shutil.copy(root / "lib64/ld-linux-x86-64.so.2", tree / "usr/lib64")
    (tree / "run").mkdir()


def _link(place: Path, target: Path) -> None:
    place.symlink_to(target)
