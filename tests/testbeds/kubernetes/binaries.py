"""Build Kubernetes' programs from pinned Go modules, once for each pin, because no release can be downloaded.

Each folder of `modules/` is a Go module whose go.mod, go.sum and tools.go pin its programs. The programs are kept in
the test cache under a hash of those files: a warm cache is used at once, and two runs never build the same program.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MODULES: Final = Path(__file__).resolve().parent / "modules"
_KUBERNETES: Final = "1.34.4"
_CONTAINERD: Final = "2.1.9"
_HELM: Final = "3.19.5"
_FLANNEL: Final = "0.26.7"


@dataclass(frozen=True)
class Recipe:
    """One module's programs by package, the variables set at link time, and the build's duration."""

    module: str
    packages: dict[str, str]
    minutes: str
    variables: dict[str, str]
    c: bool = False
    """Whether it needs a C compiler; the programs are static even so."""


def _commands(prefix: str, *names: str) -> dict[str, str]:
    return {name: f"{prefix}/{name}" for name in names}


_MAJOR, _MINOR, _ = _KUBERNETES.split(".")
_CHARTS: Final = "helm.sh/helm/v3/pkg"
_VERSIONS: Final = {  # clients refuse a server whose version they cannot parse
    "k8s.io/component-base/version.gitVersion": f"v{_KUBERNETES}",
    "k8s.io/component-base/version.gitMajor": _MAJOR,
    "k8s.io/component-base/version.gitMinor": _MINOR,
}
RECIPES: Final = (
    Recipe("etcd", {"etcd": "go.etcd.io/etcd/server/v3"}, "20 s", {}),
    Recipe(
        "kubernetes",
        _commands(
            "k8s.io/kubernetes/cmd",
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
            "kubectl",
            "kubelet",
        ),
        "5 minutes",
        _VERSIONS,
    ),
    Recipe("kwok", _commands("sigs.k8s.io/kwok/cmd", "kwok"), "a minute", {}),
    Recipe(
        "containerd",
        _commands("github.com/containerd/containerd/v2/cmd", "containerd", "containerd-shim-runc-v2", "ctr"),
        "a minute",
        {"github.com/containerd/containerd/v2/version.Version": _CONTAINERD},
    ),
    Recipe(
        "helm",
        _commands("helm.sh/helm/v3/cmd", "helm"),
        "a minute",
        {
            "helm.sh/helm/v3/internal/version.version": f"v{_HELM}",
            f"{_CHARTS}/lint/rules.k8sVersionMajor": _MAJOR,
            f"{_CHARTS}/lint/rules.k8sVersionMinor": _MINOR,
            f"{_CHARTS}/chartutil.k8sVersionMajor": _MAJOR,
            f"{_CHARTS}/chartutil.k8sVersionMinor": _MINOR,
        },
    ),
    Recipe("pause", {"pause": "corral.test/pause"}, "a second", {}),
    Recipe("kubeadm", _commands("k8s.io/kubernetes/cmd", "kube-proxy", "kubeadm"), "2 minutes", _VERSIONS),
    Recipe(
        "flannel",
        {"flanneld": "github.com/flannel-io/flannel"},
        "a minute",
        {"github.com/flannel-io/flannel/pkg/version.Version": f"v{_FLANNEL}"},
        c=True,
    ),
    Recipe("coredns", {"coredns": "github.com/coredns/coredns"}, "a minute", {}),
    Recipe(
        "cni",
        {"flannel": "github.com/containernetworking/plugins/plugins/meta/flannel"},
        "10 s",
        {},
    ),
)


def missing() -> str:
    """The missing build tools, "" when all are installed."""
    return "" if shutil.which("go") or all(_folder(r).is_dir() for r in RECIPES) else "Go is not installed"


def missing_compiler() -> str:
    """What the programs that are partly in C lack, "" when nothing."""
    built = all(_folder(recipe).is_dir() for recipe in RECIPES if recipe.c)
    return "" if built or shutil.which("gcc") else "gcc is not installed"


@functools.cache
def program(name: str) -> Path:
    """The path of one program; built if it is missing or its pins have changed."""
    recipe = next(recipe for recipe in RECIPES if name in recipe.packages)
    return build(recipe) / name


def build(recipe: Recipe) -> Path:
    """The folder of the module's programs, complete or missing."""
    folder = _folder(recipe)
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f"{recipe.module}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.is_dir():
            return folder
        names = ", ".join(recipe.packages)
        print(f"building {names} (about {recipe.minutes} when nothing of it is cached)", file=sys.stderr, flush=True)
        begun = time.monotonic()
        scratch = Path(tempfile.mkdtemp(prefix=f".{recipe.module}-", dir=folder.parent))
        try:
            _compile(recipe, scratch)
            scratch.chmod(0o755)
            scratch.rename(folder)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        print(f"built {names} in {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    return folder


def _compile(recipe: Recipe, target: Path) -> None:
    static = ["-extldflags", "-static"] if recipe.c else []
    flags = " ".join(["-s", "-w", *static, *(f"-X {name}={value}" for name, value in recipe.variables.items())])
    # Without cgo the programs are static, and no C compiler is needed.
    env = {
        **os.environ,
        "CGO_ENABLED": str(int(recipe.c)),
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "GOFLAGS": "-mod=readonly",
    }
    for name, package in recipe.packages.items():
        words = ["nice", "-n", "15", "go", "build", "-buildvcs=false", "-trimpath", "-ldflags", flags]
        done = subprocess.run(
            [*words, "-o", str(target / name), package],
            cwd=MODULES / recipe.module,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"go build {package} ended with {done.returncode}:\n{done.stdout[-4000:]}")


def _folder(recipe: Recipe) -> Path:
    """$CORRAL_CACHE (else ~/.cache/corral), then the module's name and a hash of everything that the build depends on."""
    cache = Path(os.environ.get("CORRAL_CACHE") or Path.home() / ".cache" / "corral")
    digest = hashlib.sha256(repr((sorted(recipe.packages.items()), sorted(recipe.variables.items()))).encode())
    for path in sorted((MODULES / recipe.module).iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return cache / "kubernetes" / f"{recipe.module}-{digest.hexdigest()[:16]}"


def main(names: Iterable[str]) -> None:
    """Build the named modules (or all) that the cache lacks."""
    if reason := missing():
        print(f"{reason}: the tests on a real Kubernetes will skip", file=sys.stderr)
        return
    chosen = set(names)
    for recipe in RECIPES:
        if chosen and recipe.module not in chosen:
            continue
        if recipe.c and (reason := missing_compiler()):
            print(f"{reason}: the tests of a cluster on hosts of our own will skip", file=sys.stderr)
        else:
            build(recipe)
