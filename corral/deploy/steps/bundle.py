"""The programs and images of a bundle, and which of them a host lacks."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from corral.deploy.checks.facts import Facts

RUNTIME: Final = ("containerd", "containerd-shim-runc-v2", "ctr", "runc")
KUBERNETES: Final = ("kubeadm", "kubectl", "kubelet")
PLUGINS: Final = ("bridge", "flannel", "host-local", "loopback", "portmap")
"""The CNI plugins that flannel and containerd call."""
HELM, CHART, CHART_NAME = "bin/helm", "charts/corral.tgz", "corral.tgz"
"""What a bundle has for Corral itself, and the chart's name on a host."""
HADOOP: Final = "hadoop"
"""The folder of a bundle that has the archive of a release of Hadoop."""
PROGRAMS: Final = "/usr/local/bin"
PLUGINS_FOLDER: Final = "/opt/cni/bin"
_OF_CONTROL_PLANES: Final = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")


@dataclass(frozen=True, slots=True)
class BundleFile:
    """A file of the bundle; `target` is its place on a host, absolute for programs and a bare name for images."""

    path: Path
    target: str
    digest: str
    """SHA-256 in hexadecimal."""
    size: int


@dataclass(frozen=True, slots=True)
class ImageArchive:
    """An archive in OCI's layout, with the digests of its images by name."""

    file: BundleFile
    images: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Bundle:
    """All that is installed on hosts, of one architecture, as `uname -m` says it; one of Hadoop alone fits all, ""."""

    arch: str
    programs: tuple[BundleFile, ...]
    archives: tuple[ImageArchive, ...]
    helm: BundleFile | None = None
    chart: BundleFile | None = None
    """Corral's chart, packed by `helm package`."""
    hadoop: BundleFile | None = None
    """The archive of a release of Hadoop."""

    @property
    def images(self) -> Mapping[str, str]:
        """The digests of all images, by name."""
        return {name: digest for each in self.archives for name, digest in each.images.items()}

    def absent_helm(self, own: Facts) -> tuple[BundleFile, ...]:
        """helm, where a host has it not, or has another one."""
        return (self.helm,) if self.helm is not None and _differs(self.helm, own) else ()

    def absent_programs(self, names: Iterable[str], own: Facts) -> tuple[BundleFile, ...]:
        """The programs of these names that a host has not, or has otherwise."""
        wanted = {f"{PROGRAMS}/{name}" for name in names}
        return tuple(each for each in self.programs if each.target in wanted and _differs(each, own))

    def absent_plugins(self, own: Facts) -> tuple[BundleFile, ...]:
        """The CNI plugins that a host has not, or has otherwise."""
        return tuple(
            each for each in self.programs if each.target.startswith(f"{PLUGINS_FOLDER}/") and _differs(each, own)
        )

    def absent_images(
        self, own: Facts, *, control_plane: bool, needless: Container[str] = ()
    ) -> tuple[ImageArchive, ...]:
        """The archives with an image that a host needs and has not; it does not need those of `needless`."""
        return tuple(
            each
            for each in self.archives
            if any(
                own.images.get(name) != digest
                for name, digest in each.images.items()
                if name not in needless and (control_plane or not _of_control_planes(name))
            )
        )

    def unneeded_images(self, *, control_plane: bool, needless: Container[str] = ()) -> set[str]:
        """The names of the images that a host does not need."""
        return {name for name in self.images if name in needless or not (control_plane or not _of_control_planes(name))}

    def digest_of(self, name: str) -> str:
        """The digest of a program."""
        return next(each.digest for each in self.programs if each.target == f"{PROGRAMS}/{name}")


def listing(files: Iterable[BundleFile]) -> bytes:
    """The digests and places of files as `sha256sum --check` reads them."""
    return "".join(f"{each.digest}  {each.target.lstrip('/')}\n" for each in files).encode()


def _differs(file: BundleFile, own: Facts) -> bool:
    return own.programs.get(file.target) != file.digest


def _of_control_planes(image: str) -> bool:
    return image.rpartition("/")[2].partition(":")[0] in _OF_CONTROL_PLANES
