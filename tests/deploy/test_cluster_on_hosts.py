"""`corral deploy up` from empty hosts to a cluster of Kubernetes, cut on the way; all tests share that cluster."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.testbeds.hosts import bundle
from tests.testbeds.hosts.machines import Machines
from tests.testbeds.kubernetes.images import BUSYBOX
from tests.waiting import pause

pytestmark = [pytest.mark.timeout(1800), pytest.mark.skipif(bool(bundle.missing()), reason=bundle.missing())]
GUARD = 900
"""Seconds against hanging."""
HEAD, WORKERS = "head", ("gpu1", "gpu2")
_KUBECTL: Final = "kubectl --kubeconfig /etc/kubernetes/admin.conf"
_TOKEN: Final = re.compile(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b")
_TIMEOUT: Final = ("--timeout", "300")
_SETTINGS: Final = """\
kubernetes:
  containerd: |
    [plugins."io.containerd.cri.v1.runtime"]
    restrict_oom_score_adj = true
  kubeadm: |
    apiVersion: kubeproxy.config.k8s.io/v1alpha1
    kind: KubeProxyConfiguration
    conntrack: {maxPerCore: 0, min: 0}
    ---
    apiVersion: kubelet.config.k8s.io/v1beta1
    kind: KubeletConfiguration
    evictionHard: {memory.available: 50Mi}
    imageGCHighThresholdPercent: 100
"""
"""What hosts in namespaces need: their kernel forbids the first two to them, and this machine's disk may be full."""


class Cluster:
    """Three hosts, and `corral deploy` with a list of them."""

    def __init__(self, machines: Machines, folder: Path) -> None:
        self.machines, self.folder = machines, folder
        self.listed = folder / "hosts.yaml"
        self.found = ""
        """What the second worker was before all else."""
        self.write_list(_SETTINGS)

    def write_list(self, settings: str) -> None:
        """Write the list of hosts with these settings of Kubernetes."""
        lines = ["cluster: lab", f"ssh: {{user: admin, key: {self.machines.key}}}", "hosts:"]
        for name, address in self.machines.address.items():
            role = "control-plane" if name == HEAD else "worker"
            lines.append(f"  {name}: {{address: {address}, roles: [{role}]}}")
        self.listed.write_text("\n".join(lines) + "\n" + settings)

    def words(self, *words: str) -> list[str]:
        """A command of `corral deploy` for these hosts."""
        return [sys.executable, "-m", "corral.cli.main", "deploy", *words, str(self.listed)]

    def up(self, *options: str) -> dict[str, Any]:
        """The report of an `up` that prepared every host, by host."""
        command = self.words("up", *_TIMEOUT, "--bundle", str(bundle.bundle()), "-o", "json", *options)
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=GUARD)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{self.logs()[-4000:]}"
        return {each["name"]: each for each in json.loads(done.stdout)["hosts"]}

    def cut_up(self, at: str, *options: str, begun: Callable[[], object] = lambda: None) -> None:
        """Start an `up`, and kill it with -9 once it told of a step with this title and `begun` has returned."""
        command = self.words("up", *_TIMEOUT, "--bundle", str(bundle.bundle()), *options)
        env = os.environ | {"TMPDIR": str(self.machines.home)}
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env)
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if f"] {at}" in line:
                begun()
                break
        os.kill(process.pid, signal.SIGKILL)
        process.stderr.close()
        assert process.wait(timeout=GUARD) == -signal.SIGKILL, "".join(said)

    def ask(self, *words: str) -> tuple[int, str, str]:
        """The exit code, standard output and standard error of another command of `corral deploy`."""
        done = subprocess.run(self.words(*words), capture_output=True, text=True, check=False, timeout=GUARD)
        return done.returncode, done.stdout, done.stderr

    def kubectl(self, words: str, text: bytes = b"") -> str:
        return self.machines.run(HEAD, f"{_KUBECTL} {words}", text)

    def logs(self) -> str:
        return "".join(path.read_text() for path in (self.folder / "hosts.logs").glob("*.log"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster whose control plane and first worker were cut on their way, and whose second worker was not.

    At the cut `up` is killed while kubeadm waits for the API, which cannot answer until then, and so is kubeadm, as by a
    loss of power.
    """
    machines = Machines((HEAD, *WORKERS))
    closed = "INPUT -p tcp --dport 6443 -j DROP"
    try:
        made = Cluster(machines, tmp_path_factory.mktemp("lab"))
        made.found = as_found(machines, WORKERS[1])
        machines.run(HEAD, f"iptables -A {closed}")
        made.cut_up("init --config", "--host", HEAD, "--host", WORKERS[0], begun=lambda: _wait_for_manifests(machines))
        machines.run(HEAD, f'pkill -9 -f "[k]ubeadm init"; iptables -D {closed}')
        report = made.up("--host", HEAD, "--host", WORKERS[0])
        assert "init --config /etc/kubernetes/corral.yaml" in report[HEAD]["done"]
        report = made.up()
        assert not report[HEAD]["done"] and "join head as a worker" in report[WORKERS[1]]["done"]
        yield made
    finally:
        machines.stop()


def _wait_for_manifests(machines: Machines) -> None:
    machines.run(HEAD, "until [ -e /etc/kubernetes/manifests/etcd.yaml ]; do sleep 0.1; done")


def as_found(machines: Machines, name: str) -> str:
    """All of a host that a cluster could change: files with their modes and digests, and what of it is in memory."""
    return machines.run(
        name,
        "find /etc /usr /opt /var/lib /root /home -xdev ! -path /var/lib/dpkg/\\* ! -path /var/lib/apt/\\* "
        '! -path /var/lib/systemd/\\* ! -path /etc/ld.so.cache ! -path /usr/share/\\* -printf "%p %m %l\\n" | sort; '
        "find /etc /opt /usr/local -type f ! -name ld.so.cache -exec sha256sum {} + | sort; ls -A /var/lib/containerd; "
        'dpkg-query -W; cat /etc/passwd; ip -o link | cut -d" " -f2; ip route; iptables-save | sed -n "/^-/p"; '
        "findmnt -rno TARGET | sort; systemctl list-unit-files --state=enabled --no-legend; "
        "cat /proc/sys/net/ipv4/ip_forward",
    )


def state_of(cluster: Cluster, name: str) -> str:
    """All that `up` makes on a worker, as text: the same on two workers."""
    return cluster.machines.run(
        name,
        "cat /etc/containerd/config.toml /etc/systemd/system/containerd.service /etc/systemd/system/kubelet.service "
        "/etc/cni/net.d/* /etc/sysctl.d/90-corral.conf; cd /; sha256sum usr/local/bin/* opt/cni/bin/*; "
        "ls -A /var/lib/corral/unfinished /var/lib/corral/deploy /etc/kubernetes /run/corral*; "
        "systemctl is-enabled containerd kubelet; systemctl is-active containerd kubelet; dpkg-query -W; "
        "ctr -n k8s.io images list -q | grep -v ^sha256 | sort",
    )


def test_hosts_become_nodes_and_a_cut_leaves_no_difference(cluster: Cluster) -> None:
    nodes = json.loads(cluster.kubectl("get nodes -o json"))["items"]
    ready = {
        each["metadata"]["name"]: next(c["status"] for c in each["status"]["conditions"] if c["type"] == "Ready")
        for each in nodes
    }
    assert ready == {HEAD: "True", "gpu1": "True", "gpu2": "True"}
    assert {each["status"]["nodeInfo"]["kubeletVersion"] for each in nodes} == {"v1.34.4"}
    assert state_of(cluster, "gpu1") == state_of(cluster, "gpu2")
    images = cluster.machines.run("gpu1", f"ctr -n k8s.io images list | grep ^{BUSYBOX}")
    assert "io.cri-containerd.pinned=pinned" in images, "a kubelet does not remove it where the disk is full"


def test_pods_of_two_workers_reach_each_other(cluster: Cluster) -> None:
    server = _pod("server", "gpu1", "while true; do echo hello | nc -l -p 8080; done")
    cluster.kubectl("apply -f -", json.dumps(server).encode())
    cluster.kubectl("wait --for=condition=Ready pod/server --timeout=500s")
    address = cluster.kubectl("get pod server -o jsonpath={.status.podIP}").strip()
    client = _pod("client", "gpu2", f"until nc {address} 8080 </dev/null | grep hello; do sleep 0.2; done")
    cluster.kubectl("apply -f -", json.dumps(client).encode())
    cluster.kubectl("wait --for=jsonpath={.status.phase}=Succeeded pod/client --timeout=500s")
    assert cluster.kubectl("logs client").strip() == "hello"
    cluster.kubectl("delete pod server client --now")


def test_the_dns_of_the_cluster_is_ready(cluster: Cluster) -> None:
    begun = time.monotonic()
    while cluster.kubectl("-n kube-system get deployment coredns -o jsonpath={.status.readyReplicas}").strip() != "2":
        assert time.monotonic() - begun < GUARD, cluster.kubectl("-n kube-system describe pods -l k8s-app=kube-dns")
        time.sleep(pause(begun))


def test_a_second_up_does_nothing(cluster: Cluster) -> None:
    cluster.write_list(_SETTINGS)
    cluster.up()
    report = cluster.up()
    assert {name: (each["state"], each["done"]) for name, each in report.items()} == dict.fromkeys(
        cluster.machines.address, ("prepared", [])
    )


def test_a_service_is_restarted_after_a_cut_between_its_file_and_its_restart(cluster: Cluster) -> None:
    cluster.write_list(_SETTINGS.replace("containerd: |\n", "containerd: |\n    # changed\n"))
    cluster.cut_up("restart containerd", "--host", "gpu2")
    report = cluster.up("--host", "gpu2")
    assert set(report["gpu2"]["done"]) <= {"change /etc/containerd/config.toml", "restart containerd"}
    changed, started = cluster.machines.run(
        "gpu2",
        "stat -c %Y /etc/containerd/config.toml; "
        'date -d "$(systemctl show -p ExecMainStartTimestamp --value containerd)" +%s',
    ).split()
    assert int(started) >= int(changed)
    assert not cluster.machines.run("gpu2", "ls /var/lib/corral/unfinished").split()


def test_the_status_names_each_component_and_what_is_not_well(cluster: Cluster) -> None:
    parts = _components(cluster, lambda parts: all(part["good"] for part in parts))
    named = {(part["host"], part["name"]): part for part in parts}
    for host in cluster.machines.address:
        assert named[host, "kubelet"]["version"] == named[host, "node"]["version"] == "v1.34.4"
        assert named[host, "containerd"]["since"]
    assert {"etcd-head", "kube-apiserver-head"} <= {name for _, name in named}
    cluster.machines.run("gpu1", "systemctl stop kubelet")
    code, text, said = cluster.ask("status", *_TIMEOUT)
    cluster.machines.run("gpu1", "systemctl start kubelet")
    assert code == 4, said
    assert re.search(r"✘ +gpu1 +kubelet +inactive", text) and "gpu1: journalctl -u kubelet" in text


def test_renewed_certificates_end_later_and_the_api_has_them(cluster: Cluster) -> None:
    before = _ends(cluster)
    ended, text, said = cluster.ask("certs", "renew")
    assert (ended, text) == (0, "head: its certificates are renewed.\n"), said
    after = _ends(cluster)
    assert after.keys() == before.keys()
    signed = {name for name in after if after[name] > before[name]}
    assert {"apiserver", "etcd-server", "admin.conf"} <= signed and "ca" not in signed
    code = "import ssl, sys; print(ssl.get_server_certificate((sys.argv[1], 6443)))"
    words = [sys.executable, "-c", code, cluster.machines.address[HEAD]]
    shown = subprocess.run(words, capture_output=True, text=True, check=True, timeout=GUARD).stdout
    assert shown.strip() == cluster.machines.run(HEAD, "cat /etc/kubernetes/pki/apiserver.crt").strip()


def test_tokens_are_in_no_log_and_expire_soon(cluster: Cluster) -> None:
    assert "kubeadm" in cluster.logs()
    assert not _TOKEN.findall(cluster.logs())
    secrets = json.loads(cluster.kubectl("-n kube-system get secrets -o json"))["items"]
    for name in cluster.machines.address:
        assert not cluster.machines.run(name, "find /run /tmp /var/lib/corral -name *join*").split()
    assert all("expiration" in each["data"] for each in secrets if each["type"] == "bootstrap.kubernetes.io/token")


def _components(cluster: Cluster, wanted: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
    """The components of the cluster as soon as they are as wanted."""
    begun = time.monotonic()
    while True:
        code, text, said = cluster.ask("status", *_TIMEOUT, "-o", "json")
        parts: list[dict[str, Any]] = json.loads(text)["components"]
        if code in (0, 4) and wanted(parts):
            return parts
        assert time.monotonic() - begun < GUARD, f"{parts} {said}"
        time.sleep(pause(begun))


def _ends(cluster: Cluster) -> dict[str, str]:
    code, text, said = cluster.ask("certs", "status", *_TIMEOUT, "-o", "json")
    assert code == 0, said
    return {each["name"]: each["ends"] for each in json.loads(text)["certificates"]}


def _pod(name: str, node: str, script: str) -> dict[str, Any]:
    container = {"name": "main", "image": BUSYBOX, "imagePullPolicy": "Never", "command": ["sh", "-c", script]}
    spec = {"nodeName": node, "restartPolicy": "Never", "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def test_a_worker_that_is_reset_is_as_it_was_found_and_can_join_again(cluster: Cluster) -> None:
    code, _, said = cluster.ask("reset", "--host", "gpu2", "--cluster", "other")
    assert code == 2 and "repeat that name" in said
    code, _, said = cluster.ask("reset", "--host", "gpu2", "--cluster", "lab")
    assert code == 0, said
    assert "gpu2" not in cluster.kubectl("get nodes")
    assert as_found(cluster.machines, "gpu2").splitlines() == cluster.found.splitlines()
    cluster.write_list(_SETTINGS)  # as the other hosts have it: a test before this one changed the second worker alone
    report = cluster.up()
    assert "join head as a worker" in report["gpu2"]["done"] and not report["gpu1"]["done"]
