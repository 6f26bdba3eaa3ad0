"""The files that a cluster needs on a host, and their differences from those that are there."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Final

from corral.deploy.checks.facts import Facts
from corral.deploy.checks.ours import MARK
from corral.deploy.steps.step import Step

MODULES: Final = ("overlay", "br_netfilter")
SYSCTLS: Final = {"net.bridge.bridge-nf-call-iptables": "1", "net.ipv4.ip_forward": "1"}
MODULES_FILE: Final = "/etc/modules-load.d/corral.conf"
SYSCTLS_FILE: Final = "/etc/sysctl.d/90-corral.conf"
CONTAINERD_FILE: Final = "/etc/containerd/config.toml"
KUBEADM_FILE: Final = "/etc/kubernetes/corral.yaml"
NETWORK_FILE: Final = "/etc/kubernetes/corral-network.yaml"
DATA_FILE: Final = "/etc/kubernetes/corral-data"
VOLUME_FOLDERS_FILE: Final = "/etc/kubernetes/corral-volumes"
VOLUMES_FILE: Final = "/etc/kubernetes/corral-volumes.yaml"
VALUES_FILE: Final = "/etc/kubernetes/corral-values.yaml"
CERTIFICATE_FILE: Final = "/etc/kubernetes/corral-portal.pem"
"""The portal's key and certificate; the probe sends the certificate alone."""
PAUSE: Final = "registry.k8s.io/pause:3.10.1"
"""The image of every pod's sandbox, as kubeadm 1.34 names it."""
MOST_READ: Final = 16384
"""Bytes of a file that the probe sends: one of this size may be longer."""
_SECRET: Final = re.compile(
    r"(?i)(pass|auth|token|secret|credential|webhook[_-]?url|api[_-]?url"
    r"|(?:api|access|application|integration|private|routing|service|user)[_-]?key)([^=:\s]*\s*[=:]\s*)\S.*"
)
_URL: Final = re.compile(r"""(?i)(\burl["']?\s*[=:]\s*["']?[a-z][a-z0-9+.-]*://[^/?#\s"']+[/?#])[^\s"']+""")
"""A webhook's address: whoever knows its path may send there."""
_IN_ADDRESS: Final = re.compile(r"//[^/@\s]+@")
_SWAP: Final = re.compile(r"^\s*[^#\s]\S*\s+\S+\s+swap\s", re.ASCII)
CONTAINERD: Final = f"""{MARK}version = 3

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE}"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = true
"""
MIRRORS_FOLDER: Final = "/etc/containerd/certs.d"
_MIRRORED: Final = f"""
[plugins."io.containerd.cri.v1.images".registry]
config_path = "{MIRRORS_FOLDER}"
"""
CONTAINERD_UNIT: Final = f"""{MARK}[Unit]
Description=containerd
After=network.target

[Service]
ExecStartPre=-/sbin/modprobe overlay
ExecStart=/usr/local/bin/containerd
Type=notify
Delegate=yes
KillMode=process
Restart=always
RestartSec=5
LimitNOFILE=1048576
TasksMax=infinity
OOMScoreAdjust=-999

[Install]
WantedBy=multi-user.target
"""
KUBELET_UNIT: Final = f"""{MARK}[Unit]
Description=kubelet
Wants=network-online.target containerd.service
After=network-online.target containerd.service
StartLimitIntervalSec=0

[Service]
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=/usr/local/bin/kubelet --config=/var/lib/kubelet/config.yaml \\
  --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf \\
  $KUBELET_KUBEADM_ARGS
Restart=always
RestartSec=10

[Install]
WantedBy=multi-user.target
"""


def modules_text() -> str:
    """The modules that are loaded at the start of the system."""
    return MARK + "".join(f"{name}\n" for name in MODULES)


def sysctls_text() -> str:
    """The settings of the kernel."""
    return MARK + "".join(f"{name} = {value}\n" for name, value in SYSCTLS.items())


def without_swap(fstab: str) -> str:
    """A table of file systems whose swap areas are comments."""
    return "".join(f"# {line}" if _SWAP.match(line) else line for line in fstab.splitlines(keepends=True))


def containerd_text(lines: str, *, mirrored: bool = False) -> str:
    """containerd's configuration, with the further lines of the list; `mirrored` where it asks a registry here."""
    own = CONTAINERD + (_MIRRORED if mirrored else "")
    return own + (f"\n# From the list of hosts.\n{lines.rstrip()}\n" if lines.strip() else "")


def file_step(facts: Facts, path: str, wanted: str, *, done: bool = False, unfinished: str = "") -> Step:
    """The step that writes a file, with the difference from the one that is there; values of secrets are masked.

    `done` says whether `up` does it. It refuses a file that has changed since these facts. `unfinished` names what is then
    not done, such as a service that is to be restarted.
    """
    there = facts.files.get(path)
    content = wanted.encode(errors="surrogateescape")
    digest = "any" if there is not None and len(there) >= MOST_READ else hashlib.sha256(there or b"").hexdigest()
    call = (
        ("write_file", path, "none" if there is None else digest, *([unfinished] if unfinished else ())) if done else ()
    )
    if there is None:
        added = tuple(_shown(f"+{line}") for line in wanted.splitlines())
        return Step("file", f"write {path}", True, added, call, content)
    if len(there) >= MOST_READ:
        return Step("file", f"replace {path}", True, ("it is too long to be compared",), call, content)
    if there == content:
        return Step("file", f"{path} is as wanted", False)
    before = there.decode(errors="replace")
    lines = difflib.unified_diff(before.splitlines(), wanted.splitlines(), lineterm="", n=1)
    return Step("file", f"change {path}", True, tuple(_shown(line) for line in list(lines)[2:]), call, content)


def _shown(line: str) -> str:
    """A line of a difference, without the values of secrets and without control characters."""
    masked = _IN_ADDRESS.sub("//******@", _URL.sub(r"\1******", _SECRET.sub(r"\1\2******", line)))
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in masked)[:400]


def sysctl_name(name: str) -> str:
    """The path of a setting below /proc/sys, as the probe names it."""
    return name.replace(".", "/")


def differing(wanted: Mapping[str, str], facts: Facts) -> list[str]:
    """The settings of the kernel that have another value now, or none."""
    return [name for name, value in wanted.items() if facts.sysctls.get(sysctl_name(name)) != value]
