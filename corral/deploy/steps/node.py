"""The steps that make a host a node of the cluster: programs, images, services, kubeadm, and the pods' network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from corral.deploy.checks.between_hosts import cluster_address
from corral.deploy.checks.facts import Facts
from corral.deploy.hosts.reader import Host, Hosts
from corral.deploy.steps import files, flannel, kubeadm
from corral.deploy.steps.bundle import KUBERNETES, PROGRAMS, RUNTIME, Bundle, BundleFile, listing
from corral.deploy.steps.step import Joining, Step

CONTAINERD_VERSION: Final = "2.1"
"""The least version of containerd: older ones hand devices of claims to no container."""
ADMIN, KUBELET = "/etc/kubernetes/admin.conf", "/etc/kubernetes/kubelet.conf"
UNFINISHED_NODE, UNFINISHED_NETWORK = "kubeadm", "network"
"""What a host keeps a mark of while it is begun and not done; the other marks are names of services."""
START_CLUSTER: Final = "start_cluster"
JOIN_CLUSTER: Final = "join_cluster"
"""The functions of `do.sh` between which hosts wait for each other."""


def node_steps(
    hosts: Hosts, host: Host, first: str, facts: Mapping[str, Facts], bundle: Bundle | None
) -> Iterator[Step]:  # fmt: skip
    """The steps of one host, in order. Without a bundle, and before its programs are there, none of them is done."""
    return _Node(hosts, host, first, facts, bundle).steps()


def started(own: Facts | None) -> bool:
    """Whether a control plane is up, begun and ended."""
    return own is not None and ADMIN in own.leftovers and UNFINISHED_NODE not in own.unfinished


@dataclass(frozen=True, slots=True)
class _Node:
    hosts: Hosts
    host: Host
    first: str
    facts: Mapping[str, Facts]
    bundle: Bundle | None

    @property
    def _own(self) -> Facts:
        return self.facts[self.host.name]

    @property
    def _version(self) -> str:
        return f"v{self.hosts.kubernetes.version}"

    @property
    def _recent(self) -> bool:
        """Whether containerd is there and not too old."""
        return _numbers(self._own.versions.get("containerd", "").removeprefix("v")) >= _numbers(CONTAINERD_VERSION)

    @property
    def _able(self) -> bool:
        """Whether the programs are in their places, or can be put there."""
        there = {f"{PROGRAMS}/{name}" for name in (*RUNTIME, *KUBERNETES)} <= self._own.programs.keys()
        wanted = all(self._own.versions.get(name) == self._version for name in ("kubeadm", "kubelet"))
        return self.bundle is not None or (there and self._recent and wanted)

    def steps(self) -> Iterator[Step]:
        yield from self._programs() if self.bundle is None else self._from(self.bundle)
        yield from self._services()
        if self.bundle is not None:
            yield from self._images(self.bundle)
        yield self._file(flannel.CNI_FILE, flannel.CNI)
        yield from self._cluster()

    def _programs(self) -> Iterator[Step]:
        """What is to be installed, by versions: there is no bundle to compare with."""
        runtime = self._own.versions.get("containerd", "").removeprefix("v")
        title = (
            f"containerd {runtime} is installed"
            if self._recent
            else f"install containerd {CONTAINERD_VERSION}, runc and CNI plugins"
        )
        yield Step(
            "program", title if self._recent or not runtime else f"{title} in place of {runtime}", not self._recent
        )
        for name in ("kubeadm", "kubelet"):
            there = self._own.versions.get(name, "")
            title = (
                f"{name} {self._version} is installed" if there == self._version else f"install {name} {self._version}"
            )
            needed = there != self._version
            yield Step("program", f"{title} in place of {there}" if there and needed else title, needed)

    def _from(self, bundle: Bundle) -> Iterator[Step]:
        runtime, plugins = bundle.absent_programs(RUNTIME, self._own), bundle.absent_plugins(self._own)
        yield _install("containerd", "containerd, runc and CNI plugins", (*runtime, *plugins))
        yield _install("kubelet", "Kubernetes' programs", bundle.absent_programs(KUBERNETES, self._own))

    def _services(self) -> Iterator[Step]:
        wanted = files.containerd_text(self.hosts.kubernetes.containerd)
        changed = [
            self._file(files.CONTAINERD_FILE, wanted, "containerd"),
            self._file(files.CONTAINERD_UNIT_FILE, files.CONTAINERD_UNIT, "containerd"),
        ]
        yield from changed
        replaced = bool(self.bundle and self.bundle.absent_programs(RUNTIME, self._own))
        stale = replaced or not self._recent or any(step.needed for step in changed)
        yield self._service("containerd", restart=stale)
        unit = self._file(files.KUBELET_UNIT_FILE, files.KUBELET_UNIT, "kubelet")
        yield unit
        if KUBELET in self._own.leftovers and UNFINISHED_NODE not in self._own.unfinished:
            replaced = bool(self.bundle and self.bundle.absent_programs(("kubelet",), self._own))
            stale = replaced or self._own.versions.get("kubelet", "") != self._version
            yield self._service("kubelet", restart=stale or unit.needed)
            return
        # kubeadm starts it, once it has a configuration
        service = self._own.services.get("kubelet")
        needed = service is None or service.starts != "enabled" or unit.needed or "kubelet" in self._own.unfinished
        yield Step(
            "service",
            "enable kubelet" if needed else "kubelet is enabled",
            needed,
            call=self._call("enable", "kubelet"),
        )

    def _service(self, name: str, *, restart: bool) -> Step:
        known = self._own.services.get(name)
        starts = known is not None and known.starts == "enabled"
        runs = known is not None and known.running == "active"
        restart = restart or name in self._own.unfinished
        if starts and runs and not restart:
            return Step("service", f"{name} is enabled and runs", False)
        verbs = [*(() if starts else ("enable",)), *(("restart",) if runs and restart else () if runs else ("start",))]
        return Step("service", f"{' and '.join(verbs)} {name}", call=self._call("restart", name))

    def _images(self, bundle: Bundle) -> Iterator[Step]:
        absent = bundle.absent_images(self._own, control_plane=kubeadm.is_control_plane(self.host))
        if not absent:
            yield Step("image", "all images are there", False)
            return
        names = tuple(name for archive in absent for name in archive.images)
        sent = tuple(archive.file for archive in absent)
        title = f"import {len(names)} images" if len(names) > 1 else f"import the image {names[0]}"
        yield Step("image", title, detail=names, call=("import_images", *names), content=listing(sent), files=sent)

    def _cluster(self) -> Iterator[Step]:
        if self.host.name == self.first:
            yield from self._start()
        elif KUBELET in self._own.leftovers and UNFINISHED_NODE not in self._own.unfinished:
            yield Step("kubeadm", "it is a node already", False)
        elif kubeadm.is_control_plane(self.host):
            yield Step("kubeadm", f"join {self.first} as a control plane", True, kubeadm.JOIN_CONTROL_PLANE)
        else:
            yield Step(
                "kubeadm", f"join {self.first} as a worker", True, kubeadm.JOIN,
                self._call(JOIN_CLUSTER, self.host.name), joining=self._joining(),
            )  # fmt: skip

    def _start(self) -> Iterator[Step]:
        chosen = self.hosts.kubernetes
        yield self._file(
            files.KUBEADM_FILE,
            kubeadm.init_text(files.MARK, self.hosts, self.host, cluster_address(self.host, self._own)),
        )
        if started(self._own):
            yield Step("kubeadm", "the control plane is there", False)
        else:
            yield Step(
                "kubeadm", f"init --config {files.KUBEADM_FILE}", True, kubeadm.INIT,
                self._call(START_CLUSTER, files.KUBEADM_FILE, self.host.name),
            )  # fmt: skip
        objects = self._file(
            files.NETWORK_FILE, flannel.network_text(files.MARK, chosen.pod_subnet), UNFINISHED_NETWORK
        )
        yield objects
        needed = objects.needed or UNFINISHED_NETWORK in self._own.unfinished or not started(self._own)
        yield Step(
            "chart",
            "apply the pods' network (flannel)" if needed else "the pods' network (flannel) is there",
            needed,
            call=self._call("apply_network", files.NETWORK_FILE, flannel.NAMESPACE, flannel.DAEMON_SET),
        )
        yield Step(
            "chart", f"install Corral with PostgreSQL in the cluster {self.hosts.cluster}, or bring it up to date"
        )

    def _joining(self) -> Joining | None:
        head, own = self.hosts.named(self.first), self.facts.get(self.first)
        if head is None or own is None:
            return None
        at = self.hosts.kubernetes.endpoint or cluster_address(head, own)
        return Joining(self.first, started(own), kubeadm.endpoint_of(at), cluster_address(self.host, self._own))

    def _file(self, path: str, wanted: str, unfinished: str = "") -> Step:
        return files.file_step(self._own, path, wanted, done=self._able, unfinished=unfinished)

    def _call(self, *words: str) -> tuple[str, ...]:
        return words if self._able else ()


def _install(service: str, what: str, absent: tuple[BundleFile, ...]) -> Step:
    """The step that puts programs in place, and has their service restarted later."""
    if not absent:
        return Step("program", f"{what} are as in the bundle", False)
    names = tuple(each.target for each in absent)
    return Step(
        "program", f"install {what}", detail=names, call=("install_programs", service), content=listing(absent),
        files=absent,
    )  # fmt: skip


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split("~")[0].split("-")[0].split("+")[0].split(".")[:2]
    return tuple(int(part) for part in parts if part.isascii() and part.isdecimal() and len(part) < 9)
