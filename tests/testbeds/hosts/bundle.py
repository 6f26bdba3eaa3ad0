"""A bundle for `corral deploy up`: the programs that the test cache has, and images of them, made once and kept there."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from corral.deploy.steps import files, flannel
from corral.deploy.steps.bundle import PLUGINS, RUNTIME
from tests.testbeds.hosts import roots
from tests.testbeds.kubernetes import binaries, images, kubelet
from tests.testbeds.kubernetes.binaries import program
from tests.testbeds.kubernetes.daemons import FEW_COLLECTIONS
from tests.testbeds.kubernetes.servertree import POSTGRESQL, ROOT, SERVER, postgres_tree, server_tree

VERSION, LATER = "1.34.4", "1.34.5"
"""The version of the programs, and the one that `later` gives the same programs. Both are of equal length."""
CORRAL: Final = f"{SERVER}:1"
_CONTROL_PLANE: Final = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
_FORM: Final = 2
"""Counts the changes of what is made below, so that each makes a new bundle."""
_LIBRARIES: Final = "usr/lib/x86_64-linux-gnu"
_OF_TABLES: Final = ("libxtables.so.12", "libmnl.so.0", "libnftnl.so.11", "libc.so.6", "libm.so.6")


def missing() -> str:
    """What a bundle lacks on this machine, "" when nothing."""
    return roots.missing() or kubelet.missing() or binaries.missing_compiler()


def bundle() -> Path:
    """The bundle's folder, complete or missing."""
    return _made("bundle", _make)


def later() -> Path:
    """A bundle of the same programs that call themselves the next patch release, for an upgrade."""
    return _made("later", _make_later)


def _made(kind: str, make: Callable[[Path], None]) -> Path:
    programs = {
        name: program(name) for name in ("containerd", "kubelet", "etcd", "kubeadm", "flanneld", "coredns", "pause")
    }
    pins = hashlib.sha256(repr((sorted(map(str, programs.values())), str(roots.root()), _FORM)).encode()).hexdigest()
    folder = roots.root().parent.parent / f"{kind}-{pins[:16]}"
    with open(folder.parent / f"{kind}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            scratch = Path(tempfile.mkdtemp(prefix=f".{kind}-", dir=folder.parent))
            try:
                make(scratch)
                scratch.chmod(0o755)
                scratch.rename(folder)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    return folder


def with_corral(folder: Path, given: Path) -> Path:
    """The given bundle with this Corral, in the folder: its image, PostgreSQL's, the chart and helm, all made once."""
    own, whole = folder / "own", folder / given.name
    if not own.is_dir():
        _make_corral(own)
    if not whole.is_dir():
        for part in ("bin", "cni", "images", "packages", "charts"):
            (whole / part).mkdir(parents=True)
            for source in (given / part, own / part):
                for file in source.iterdir() if source.is_dir() else ():
                    _link(whole / part / file.name, file)
    return whole


def _make_corral(folder: Path) -> None:
    for part in ("bin", "images"):
        (folder / part).mkdir(parents=True)
    _link(folder / "bin/helm", program("helm"))
    for name, image, fill in (("corral", CORRAL, server_tree), ("postgresql", POSTGRESQL, postgres_tree)):
        tree = folder / "tree"
        tree.mkdir()
        images.tree_image(folder / "images" / f"{name}.tar", image, fill(tree))
        shutil.rmtree(tree)
    words = ["package", str(ROOT / "deploy" / "chart"), "--destination", str(folder / "charts")]
    done = subprocess.run(
        [str(program("helm")), *words],
        env={**os.environ, "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (packed,) = (folder / "charts").iterdir()
    packed.rename(packed.with_name("corral.tgz"))


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


def _make_later(folder: Path) -> None:
    for part in ("bin", "cni", "images", "packages"):
        (folder / part).mkdir()
        for file in (bundle() / part).iterdir():
            if not file.name.startswith("kube"):
                _link(folder / part / file.name, file)
    for name in ("kubeadm", "kubectl", "kubelet"):
        _renamed(program(name), folder / "bin" / name)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        for name in (*_CONTROL_PLANE, "kube-proxy"):
            file = _renamed(program(name), Path(scratch, "programs", name))
            more = _packet_filter if name == "kube-proxy" else None
            _image(
                folder / "images",
                Path(scratch),
                f"registry.k8s.io/{name}:v{LATER}",
                f"usr/local/bin/{name}",
                more,
                file,
            )


def _renamed(source: Path, target: Path) -> Path:
    """A copy of a program in which its version is the later one: text of equal length, so that nothing moves."""
    content = source.read_bytes()
    assert content.count(f"v{VERSION}".encode()), f"{source} does not have its version"
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(content.replace(f"v{VERSION}".encode(), f"v{LATER}".encode()))
    target.chmod(0o755)
    return target


def _images(folder: Path, scratch: Path) -> None:
    for name in _CONTROL_PLANE:
        _image(folder, scratch, f"registry.k8s.io/{name}:v{VERSION}", f"usr/local/bin/{name}")
    _image(folder, scratch, "registry.k8s.io/etcd:3.6.5-0", "usr/local/bin/etcd")
    _image(folder, scratch, "registry.k8s.io/coredns/coredns:v1.12.1", "coredns")
    _image(folder, scratch, f"registry.k8s.io/kube-proxy:v{VERSION}", "usr/local/bin/kube-proxy", _packet_filter)
    _image(folder, scratch, flannel.IMAGE, "opt/bin/flanneld", _packet_filter)
    _image(folder, scratch, files.PAUSE, "pause")
    images.busybox_image(folder / "busybox.tar")


def _image(
    folder: Path, scratch: Path, name: str, path: str, more: Callable[[Path], None] | None = None,
    source: Path | None = None,
) -> None:  # fmt: skip
    """Write an image with one program at this path."""
    file = Path(path).name
    tree = scratch / file
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    os.link(source or program(file), tree / path)
    if more is not None:
        more(tree)
    images.tree_image(folder / f"{file}.tar", name, tree, entrypoint=(f"/{path}",), command=(), env=FEW_COLLECTIONS)
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
