"""Three hosts of our own and `corral deploy` with a list of them, for tests and benchmarks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from tests import warm
from tests.deploy.counted_ssh import CountedSsh
from tests.testbeds.hosts import bundle
from tests.testbeds.hosts.machines import Machines

GUARD: Final = 900
"""Seconds against hanging."""
HEAD: Final = "head"
WORKERS: Final = ("gpu1", "gpu2")
_CORRAL: Final = (sys.executable, "-m", "corral.cli.main")
_KUBECTL: Final = "kubectl --kubeconfig /etc/kubernetes/admin.conf"
TIMEOUT: Final = ("--timeout", "300")
"""Of an answer, on a machine that does much else."""
FULL: Final = ("--skip-check", "disk")
"""The disk of this machine may be full."""
SETTINGS: Final = """\
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
        self.version, self.given = bundle.VERSION, bundle.bundle()
        """What the cluster runs, and the bundle that has it: an upgrade changes both."""
        self.write_list(SETTINGS)

    def write_list(self, settings: str) -> None:
        """Write the list of hosts with these settings of Kubernetes."""
        lines = ["cluster: lab", f"ssh: {{user: admin, key: {self.machines.key}}}", "hosts:"]
        for name, address in self.machines.address.items():
            role = "control-plane" if name == HEAD else "worker"
            lines.append(f"  {name}: {{address: {address}, roles: [{role}]}}")
        settings = settings.replace("kubernetes:\n", f"kubernetes:\n  version: {self.version}\n", 1)
        self.listed.write_text("\n".join(lines) + "\n" + settings)

    def words(self, *words: str) -> list[str]:
        """A command of `corral deploy` for these hosts."""
        return [*_CORRAL, "deploy", *words, str(self.listed)]

    def up(self, *options: str, given: Path | None = None) -> dict[str, Any]:
        """The report of an `up` that prepared every host, by host."""
        code, text, said = self.ask("up", *TIMEOUT, *FULL, "--bundle", str(given or self.given), "-o", "json", *options)
        assert code == 0, f"{text}\n{said}\n{self.logs()[-4000:]}"
        return {each["name"]: each for each in json.loads(text)["hosts"]}

    def packed(self) -> Path:
        """The bundle as one file, as it comes into a closed network."""
        file = self.folder / "lab.bundle"
        code, _, said = self._asked([*self.words("bundle")[:-1], str(self.given), str(file)])
        assert code == 0, said
        return file

    def cut_up(self, at: str, *options: str, begun: Callable[[], object] = lambda: None) -> None:
        """Start an `up`, and kill it with -9 once it told of a step with this title and `begun` has returned."""
        self.cut(f"] {at}", self.words("up", *TIMEOUT, *FULL, "--bundle", str(self.given), *options), begun)

    def cut(self, at: str, command: Sequence[str], begun: Callable[[], object] = lambda: None) -> None:
        """Start a command, and kill it with -9 once it told of `at` and `begun` has returned."""
        env = os.environ | {"TMPDIR": str(self.machines.home)}
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env)
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if at in line:
                begun()
                break
        os.kill(process.pid, signal.SIGKILL)
        process.stderr.close()
        assert process.wait(timeout=GUARD) == -signal.SIGKILL, "".join(said)

    def words_of(self, *words: str) -> list[str]:
        """A command of `corral deploy` that names hosts, and so the list by an option."""
        return [*_CORRAL, "deploy", *words, "--hosts", str(self.listed)]

    def ask_of(self, *words: str) -> tuple[int, str, str]:
        """What such a command ended with and printed."""
        return self._asked(self.words_of(*words))

    def ask(self, *words: str, ssh: CountedSsh | None = None) -> tuple[int, str, str]:
        """The exit code, standard output and standard error of another command of `corral deploy`."""
        return self._asked(self.words(*words), ssh)

    @staticmethod
    def _asked(command: Sequence[str], ssh: CountedSsh | None = None) -> tuple[int, str, str]:
        env = ssh.environment() if ssh else os.environ
        done = warm.corral(command[len(_CORRAL) :], env=env, seconds=GUARD)
        return done.returncode, done.stdout, done.stderr

    def kubectl(self, words: str, text: bytes = b"") -> str:
        """What kubectl prints on the control plane."""
        return self.machines.run(HEAD, f"{_KUBECTL} {words}", text)

    def logs(self) -> str:
        """The logs of all hosts."""
        return "".join(path.read_text() for path in (self.folder / "hosts.logs").glob("*.log"))


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
