"""A real kubelet with containerd, to test exits, logs, exec and devices of containers.

One node on this machine: containerd and the kubelet in a temporary folder, their containers on a bridge and in a cgroup
of their own. `close` leaves no process, mount, cgroup or network link behind.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import yaml

from tests.reserved import free_port
from tests.testbeds.docker import static_busybox
from tests.testbeds.kubernetes import binaries, cgroups, images, networks, relay, remains
from tests.testbeds.kubernetes.binaries import program
from tests.testbeds.kubernetes.controlplane import Refused
from tests.testbeds.kubernetes.daemons import Daemon
from tests.waiting import pause

_CONTAINERD = """\
version = 3
root = "{home}/containerd"
state = "{home}/run"
disabled_plugins = [
  "io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri", "io.containerd.internal.v1.tracing",
  "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.erofs", "io.containerd.snapshotter.v1.zfs",
]
[grpc]
  address = "{home}/containerd.sock"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "{snapshotter}"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{pause}"
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "{home}/registries"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  cdi_spec_dirs = ["{home}/cdi"]
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "{home}/cni"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      BinaryName = "{runc}"
      Root = "{home}/runc"
      SystemdCgroup = false
[plugins."io.containerd.grpc.v1.cri"]
  stream_server_address = "127.0.0.1"
"""

_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


def missing() -> str:
    """The missing programs for a node, "" when all are installed."""
    needs = {
        "runc": shutil.which("runc"),
        "containernetworking-plugins": Path("/usr/lib/cni/bridge").exists(),
        "busybox-static": static_busybox(),
        "iproute2": shutil.which("ip"),
    }
    absent = [package for package, found in needs.items() if not found]
    if absent:
        return f"the Debian packages {' and '.join(absent)} are not installed"
    return binaries.missing() or ("" if os.geteuid() == 0 else "a kubelet needs root")


class Plane(Protocol):
    """What a node needs of its control plane: `ControlPlane` of this process, or that of another one."""

    port: int
    service_address: str
    ca: Path

    def request(
        self, method: str, path: str, body: Any = None, *, content: str = ..., seconds: float = ...
    ) -> Any: ...  # fmt: skip

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path: ...


class KubeletNode:
    """A node named `name`, Ready when constructed, with the images `images.BUSYBOX` and `images.PAUSE`.

    `gateway` is this machine's address for its pods; `cdi`, `plugins` and `registry` are the folders of device drivers.
    `settings` are merged into the KubeletConfiguration.
    """

    def __init__(
        self,
        plane: Plane,
        name: str = "real",
        *,
        labels: Mapping[str, str] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        begun = time.monotonic()
        self.name, self._plane = name, plane
        self._provided: set[str] = set()
        remains.sweep()
        self.home = Path(tempfile.mkdtemp(prefix=remains.NODES))
        self.cdi, self.plugins, self.registry = (
            self.home / "cdi",
            self.home / "kubelet" / "plugins",
            self.home / "kubelet" / "plugins_registry",
        )
        for folder in (self.cdi, self.plugins, self.registry, self.home / "cni", self.home / "registries"):
            folder.mkdir(parents=True)
        self.cgroup = cgroups.Tree(self.home.name)
        self.cgroup.create()
        self.bridge = networks.Bridge()
        remains.write_owner(self.home, self.bridge.name)
        self.gateway = self.bridge.gateway
        self.bridge.add_address(plane.service_address)
        self._configure(settings or {})
        self.containerd = Daemon("containerd", self._containerd_command(), self.home, self._environment())
        self.kubelet = Daemon("kubelet", self._kubelet_command(labels or {}), self.home, self._environment())
        words: list[str | Path] = [sys.executable, Path(relay.__file__), plane.service_address, "443", str(plane.port)]
        self._relay = Daemon("relay", words, self.home)
        self.start_seconds: dict[str, float] = {}
        try:
            self.start_seconds["containerd"] = self.containerd.start(self._runtime_ready)
            self._import_own_images()
            self._relay.start(lambda: _listens(plane.service_address, 443))
            self.start_seconds["kubelet"] = self.start_kubelet()
        except BaseException:
            self.close()
            raise
        self.start_seconds["all"] = time.monotonic() - begun

    def __enter__(self) -> KubeletNode:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start_kubelet(self) -> float:
        """Start the kubelet, also after a stop, and wait until its node is Ready; returns the seconds."""
        return self.kubelet.start(self._node_ready, seconds=240)

    def restart_kubelet(self) -> float:
        """Kill the kubelet and start it again; containers run on."""
        self.kubelet.kill()
        self._plane.request(
            "PATCH",
            f"/api/v1/nodes/{self.name}/status",
            {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "Test", "message": "killed"}]}},
            content="application/strategic-merge-patch+json",
        )
        return self.start_kubelet()

    def close_to_tasks(self, closed: bool) -> None:
        """Cordon the node, or take the cordon away with the taint that a controller sets for it; its pods run on."""
        path, merge = f"/api/v1/nodes/{self.name}", "application/merge-patch+json"
        node = self._plane.request("PATCH", path, {"spec": {"unschedulable": closed}}, content=merge)
        begun = time.monotonic()
        while not closed and any(taint["key"] == _UNSCHEDULABLE for taint in node["spec"].get("taints", ())):
            assert time.monotonic() - begun < 150, "no controller takes the taint away"
            time.sleep(pause(begun))
            node = self._plane.request("GET", path)

    def import_image(self, archive: Path) -> None:
        """Import the images of an OCI archive or of a `docker save`.

        ctr itself takes an archive apart in less than half the time that containerd needs for one that ctr passes on.
        """
        self.ctr("images", "import", "--local", "--snapshotter", _snapshotter(), str(archive))

    def import_tree(self, name: str, tree: Path, **options: Any) -> None:
        """Import an image of all files under `tree`; options as in `images.tree_image`."""
        self._provided.discard(name)
        archive = self.home / "tree.tar"
        try:
            images.tree_image(archive, name, tree, **options)
            self.import_image(archive)
        finally:
            archive.unlink(missing_ok=True)

    def provide(self, name: str, fill: Callable[[Path], Path], **options: Any) -> None:
        """Import an image of all files that `fill` puts into a folder, once for all tests that share the node."""
        if name not in self._provided:
            tree = self.home / "tree"
            self.import_tree(name, fill(tree), **options)
            shutil.rmtree(tree)
            self._provided.add(name)

    def ctr(self, *words: str) -> str:
        """Run containerd's own client in the kubelet's namespace; returns its output."""
        command = [str(program("ctr")), "--address", str(self._socket), "--namespace", "k8s.io", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"ctr {' '.join(words)}: {done.stderr[-2000:]}")
        return done.stdout

    def container_pids(self, pod_uid: str) -> list[int]:
        """All processes of a pod, including its sandbox's."""
        return self.cgroup.pids(pod_uid)

    def close(self) -> None:
        """End the kubelet, every container and containerd, and remove everything they made."""
        for daemon in (self.kubelet, self.containerd, self._relay):
            daemon.stop()
        remains.remove(self.home, self.bridge.name)

    @property
    def _socket(self) -> Path:
        return self.home / "containerd.sock"

    def _environment(self) -> dict[str, str]:
        """containerd looks for its shim on the PATH."""
        folders = {str(program(name).parent) for name in ("containerd", "kubelet")}
        return {"PATH": os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)]), "HOME": str(self.home)}

    def _configure(self, settings: Mapping[str, Any]) -> None:
        (self.home / "containerd.toml").write_text(
            _CONTAINERD.format(
                home=self.home, pause=images.PAUSE, runc=shutil.which("runc"), snapshotter=_snapshotter()
            )
        )
        (self.home / "cni" / "10-corral.conflist").write_text(self.bridge.configuration(self.home / "addresses"))
        (self.home / "resolv.conf").write_text("")
        config = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.gateway,
            "port": free_port(),
            "healthzPort": 0,
            "readOnlyPort": 0,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": False},
                "x509": {"clientCAFile": str(self._plane.ca)},
            },
            "authorization": {"mode": "AlwaysAllow"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": self.cgroup.path,
            "containerRuntimeEndpoint": f"unix://{self._socket}",
            "failCgroupV1": False,
            "failSwapOn": False,
            "syncFrequency": "2s",
            "nodeStatusUpdateFrequency": "2s",
            "oomScoreAdj": 0,
            "makeIPTablesUtilChains": False,
            "podLogsDir": str(self.home / "logs"),
            "resolvConf": str(self.home / "resolv.conf"),
            "clusterDNS": [self.gateway],
            "clusterDomain": "cluster.local",
            "volumePluginDir": str(self.home / "volumes"),
            "evictionHard": {"memory.available": "50Mi"},
            "imageGCHighThresholdPercent": 100,
            "localStorageCapacityIsolation": False,
        }
        (self.home / "kubelet.yaml").write_text(yaml.safe_dump(config | dict(settings)))

    def _containerd_command(self) -> list[str | Path]:
        return [program("containerd"), "--config", self.home / "containerd.toml", "--log-level", "warn"]

    def _kubelet_command(self, labels: Mapping[str, str]) -> list[str | Path]:
        kubeconfig = self._plane.kubeconfig_for(f"system:node:{self.name}", ["system:nodes"])
        words: Sequence[str] = [
            f"--config={self.home / 'kubelet.yaml'}",
            f"--kubeconfig={kubeconfig}",
            f"--hostname-override={self.name}",
            f"--node-ip={self.gateway}",
            f"--root-dir={self.home / 'kubelet'}",
            f"--cert-dir={self.home / 'pki'}",
            f"--node-labels={','.join(f'{key}={value}' for key, value in labels.items())}",
        ]
        return [program("kubelet"), *words]

    def _import_own_images(self) -> None:
        for write in (images.busybox_image, images.pause_image):
            archive = self.home / "own.tar"
            write(archive)
            self.import_image(archive)
            archive.unlink()

    def _runtime_ready(self) -> bool:
        with contextlib.suppress(RuntimeError):
            self.ctr("version")
            return True
        return False

    def _node_ready(self) -> bool:
        with contextlib.suppress(OSError, Refused):
            node = self._plane.request("GET", f"/api/v1/nodes/{self.name}")
            conditions = {entry["type"]: entry["status"] for entry in node["status"].get("conditions", ())}
            return conditions.get("Ready") == "True"
        return False


def _listens(address: str, port: int) -> bool:
    """Whether a socket listens there, by the kernel's tables, because tests connect to loopback addresses only."""
    octets = "".join(f"{int(octet):02X}" for octet in reversed(address.split(".")))
    return f" {octets}:{port:04X} 00000000:0000 0A " in Path("/proc/net/tcp").read_text()


def _snapshotter() -> str:
    """overlayfs where the kernel has it."""
    return "overlayfs" if "\toverlay\n" in Path("/proc/filesystems").read_text() else "native"
