"""The steps that make a host a node of the cluster: programs, images, services, kubeadm, and the pods' network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from corral.deploy.checks.between_hosts import cluster_address
from corral.deploy.checks.components import control_planes
from corral.deploy.checks.facts import Facts
from corral.deploy.checks.ours import (
    ADMIN,
    BALANCER_FILE,
    BALANCER_UNIT_FILE,
    CONTAINERD_UNIT_FILE,
    KUBELET,
    KUBELET_UNIT_FILE,
    MARK,
    UNFINISHED_NODE,
)
from corral.deploy.hosts.reader import Host, Hosts
from corral.deploy.steps import balancer, files, flannel, installation, kubeadm, registry, volumes
from corral.deploy.steps.bundle import KUBERNETES, PROGRAMS, RUNTIME, Bundle, BundleFile, listing
from corral.deploy.steps.step import Joining, Step

CONTAINERD_VERSION: Final = "2.1"
"""The least version of containerd: older ones hand devices of claims to no container."""
UNFINISHED_NETWORK, UNFINISHED_UPGRADE = "network", "upgrade"
"""What a host keeps a mark of while it is begun and not done, as of kubeadm; the other marks are names of services."""
OF_KUBEADM: Final = frozenset({UNFINISHED_NODE, UNFINISHED_UPGRADE})
"""The marks of a host whose files kubeadm is about to write."""
START_CLUSTER: Final = "start_cluster"
JOIN_CLUSTER: Final = "join_cluster"
JOIN_PLANE: Final = "join_plane"
"""The functions of `do.sh` between which hosts wait for each other."""
UPGRADE_NODE: Final = "upgrade_node"
"""The function of `do.sh` that lets kubeadm upgrade what it made."""


def node_steps(
    hosts: Hosts, host: Host, first: str, facts: Mapping[str, Facts], bundle: Bundle | None
) -> Iterator[Step]:  # fmt: skip
    """The steps of one host, in order. Without a bundle, and before its programs are there, none of them is done."""
    return _Node(hosts, host, first, facts, bundle).steps()


def upgrade_steps(
    hosts: Hosts, host: Host, first: str, facts: Mapping[str, Facts], bundle: Bundle
) -> Iterator[Step]:  # fmt: skip
    """The steps that bring a node to the version of the bundle, in order; those of the whole cluster are not among them."""
    return _Node(hosts, host, first, facts, bundle).upgrade_steps(bundle)


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

    def _untold(self, name: str) -> bool:
        """Whether a busy host did not tell the version of a program in time; with a bundle, the digest decides."""
        return self.bundle is not None and not self._own.versions.get(name)

    @property
    def _able(self) -> bool:
        """Whether the programs are in their places, or can be put there."""
        there = {f"{PROGRAMS}/{name}" for name in (*RUNTIME, *KUBERNETES)} <= self._own.programs.keys()
        wanted = all(self._own.versions.get(name) == self._version for name in ("kubeadm", "kubelet"))
        return self.bundle is not None or (there and self._recent and wanted)

    @property
    def _corral(self) -> installation.Installation | None:
        return installation.installation_of(self.hosts, self.first, self.facts)

    def steps(self) -> Iterator[Step]:
        yield from self._programs() if self.bundle is None else self._from(self.bundle)
        yield from self._runtime()
        yield from self._balancer()
        yield from self._kubelet()
        if self.bundle is not None:
            yield from self._images(self.bundle)
        yield self._file(flannel.CNI_FILE, flannel.CNI)
        if self._corral is not None:
            yield from installation.data_steps(self._corral, self.host, self._own)
        yield from volumes.folder_steps(self.hosts, self.host, self._own)
        yield from registry.own_steps(self.hosts, self.host, self._own, self.bundle, able=self._able)
        yield from self._cluster()
        yield from registry.mirror_steps(self.hosts, self.host, self.facts, self.bundle, able=self._able)

    def upgrade_steps(self, bundle: Bundle) -> Iterator[Step]:
        """kubeadm comes before the kubelet, which must not be newer than the control plane."""
        yield self._install_runtime(bundle)
        yield from self._runtime()
        yield from self._images(bundle)
        absent = bundle.absent_programs(("kubeadm",), self._own)
        yield _install(UNFINISHED_UPGRADE, "kubeadm", absent)
        if self.host.name == self.first:
            yield self._documents()
        needed = bool(absent) or UNFINISHED_UPGRADE in self._own.unfinished
        verb = f"apply {self._version}" if self.host.name == self.first else f"node to {self._version}"
        yield Step(
            "kubeadm",
            f"upgrade {verb}" if needed else f"kubeadm has upgraded it to {self._version}",
            needed,
            call=(UPGRADE_NODE, "apply" if self.host.name == self.first else "node", self._version),
        )
        yield _install("kubelet", "kubelet and kubectl", bundle.absent_programs(("kubectl", "kubelet"), self._own))
        yield from self._kubelet()
        yield self._file(flannel.CNI_FILE, flannel.CNI)

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
        yield self._install_runtime(bundle)
        yield _install("kubelet", "Kubernetes' programs", bundle.absent_programs(KUBERNETES, self._own))
        if self.hosts.corral is not None and self.host.name == self.first:
            yield _install(installation.UNFINISHED_CORRAL, "helm", bundle.absent_helm(self._own))

    def _install_runtime(self, bundle: Bundle) -> Step:
        runtime, plugins = bundle.absent_programs(RUNTIME, self._own), bundle.absent_plugins(self._own)
        return _install("containerd", "containerd, runc and CNI plugins", (*runtime, *plugins))

    def _runtime(self) -> Iterator[Step]:
        wanted = files.containerd_text(self.hosts.kubernetes.containerd, mirrored=self.hosts.registry is not None)
        changed = [
            self._file(files.CONTAINERD_FILE, wanted, "containerd"),
            self._file(CONTAINERD_UNIT_FILE, files.CONTAINERD_UNIT, "containerd"),
        ]
        yield from changed
        replaced = bool(
            self.bundle and (self.bundle.absent_programs(RUNTIME, self._own) or self.bundle.absent_plugins(self._own))
        )
        old = not self._recent and not self._untold("containerd")
        stale = replaced or old or any(step.needed for step in changed)
        yield self._service("containerd", restart=stale)

    def _balancer(self) -> Iterator[Step]:
        if not balancer.is_needed(self.hosts):
            return
        wanted = balancer.configuration(self.hosts, self.facts, self._own)
        changed = [
            self._file(BALANCER_FILE, wanted, balancer.SERVICE),
            self._file(BALANCER_UNIT_FILE, balancer.UNIT, balancer.SERVICE),
        ]
        yield from changed
        yield self._service(balancer.SERVICE, restart=any(step.needed for step in changed))

    def _kubelet(self) -> Iterator[Step]:
        unit = self._file(KUBELET_UNIT_FILE, files.KUBELET_UNIT, "kubelet")
        yield unit
        if KUBELET in self._own.leftovers and UNFINISHED_NODE not in self._own.unfinished:
            replaced = bool(self.bundle and self.bundle.absent_programs(("kubelet",), self._own))
            other = self._own.versions.get("kubelet", "") != self._version and not self._untold("kubelet")
            stale = replaced or other
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
        needless = installation.needless_images(self.hosts, self.host)
        plane = kubeadm.is_control_plane(self.host)
        absent = bundle.absent_images(self._own, control_plane=plane, needless=needless)
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
            yield Step(
                "kubeadm", f"join {self.first} as a control plane", True, kubeadm.JOIN_CONTROL_PLANE,
                self._call(JOIN_PLANE, self.host.name), joining=self._joining(),
            )  # fmt: skip
        else:
            yield Step(
                "kubeadm", f"join {self.first} as a worker", True, kubeadm.JOIN,
                self._call(JOIN_CLUSTER, self.host.name), joining=self._joining(),
            )  # fmt: skip

    def _start(self) -> Iterator[Step]:
        chosen = self.hosts.kubernetes
        if started(self._own) and self._has_unreached_leader():
            yield Step("kubeadm", "the control plane is there", False)
            return
        yield self._documents()
        if started(self._own):
            yield Step("kubeadm", "the control plane is there", False)
        else:
            yield Step(
                "kubeadm", f"init --config {files.KUBEADM_FILE}", True, kubeadm.INIT,
                self._call(START_CLUSTER, files.KUBEADM_FILE, self.host.name),
            )  # fmt: skip
        objects = self._file(files.NETWORK_FILE, flannel.network_text(MARK, chosen.pod_subnet), UNFINISHED_NETWORK)
        yield objects
        needed = objects.needed or UNFINISHED_NETWORK in self._own.unfinished or not started(self._own)
        yield Step(
            "chart",
            "apply the pods' network (flannel)" if needed else "the pods' network (flannel) is there",
            needed,
            call=self._call("apply_network", files.NETWORK_FILE, flannel.NAMESPACE, flannel.DAEMON_SET),
        )
        yield from volumes.object_steps(self.hosts, self._own, self._file, able=self._able)
        if self._corral is not None:
            yield from installation.chart_steps(self._corral, self._own, self.bundle, able=self._able)

    def _has_unreached_leader(self) -> bool:
        """Whether a control plane that was not reached may have what there is once in a cluster, as Corral's chart."""
        leads = files.NETWORK_FILE in self._own.files
        return not leads and any(each.name not in self.facts for each in control_planes(self.hosts))

    def _documents(self) -> Step:
        alone = started(self._own) and balancer.begun_alone(self._own, files.KUBEADM_FILE)
        address = cluster_address(self.host, self._own)
        text = kubeadm.init_text(MARK, self.hosts, self.host, address, "" if alone else balancer.endpoint(self.hosts))
        return self._file(files.KUBEADM_FILE, text)

    def _joining(self) -> Joining | None:
        head, own = self.hosts.named(self.first), self.facts.get(self.first)
        if head is None or own is None:
            return None
        at = balancer.endpoint(self.hosts) or kubeadm.endpoint_of(cluster_address(head, own))
        plane = kubeadm.is_control_plane(self.host)
        return Joining(self.first, started(own), at, cluster_address(self.host, self._own), plane)

    def _file(self, path: str, wanted: str, unfinished: str = "") -> Step:
        return files.file_step(self._own, path, wanted, done=self._able, unfinished=unfinished)

    def _call(self, *words: str) -> tuple[str, ...]:
        return words if self._able else ()


def _install(service: str, what: str, absent: tuple[BundleFile, ...]) -> Step:
    """The step that puts programs in place, and has their service restarted later."""
    if not absent:
        return Step("program", f"{what} {'is' if what == 'helm' else 'are'} as in the bundle", False)
    names = tuple(each.target for each in absent)
    return Step(
        "program", f"install {what}", detail=names, call=("install_programs", service), content=listing(absent),
        files=absent,
    )  # fmt: skip


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split("~")[0].split("-")[0].split("+")[0].split(".")[:2]
    return tuple(int(part) for part in parts if part.isascii() and part.isdecimal() and len(part) < 9)
