"""Facts of a good host, as a probe prints them, and changes of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from corral.deploy.checks import ours
from corral.deploy.checks.facts import Facts, Service, parse_facts
from corral.deploy.hosts.reader import Hosts, load_hosts
from corral.deploy.steps import balancer, files, flannel, kubeadm
from corral.deploy.steps.plan import PACKAGES

GOOD: Final = """\
Welcome to this machine.
corral-facts begin 1
time=1795866691.498284275
user=admin
sudo=free
reached=10.0.0.2
hostname=gpu1
machine=3d1219c7c4c5404aaa1f6d2a48adfda4
os=debian 12
os_name=Debian GNU/Linux 12 (bookworm)
kernel=6.1.0-26-amd64
arch=x86_64
cgroup=v2 cpuset cpu io memory hugetlb pids rdma misc
ntp=yes
cpus=96
memory=1055000000
mount=104857600 94371840 /
mount=1048576000 943718400 /data
disk=1953525168 nvme0n1
address=lo 127.0.0.1/8
address=eth0 10.0.0.2/24
address=eth0 fe80::fc:ff:fe00:1/64
address=docker0 172.17.0.1/16
interface=9000 up eth0
interface=65536 unknown lo
route=eth0
nameserver=10.0.0.53
resolves=yes
listens=0016
rdma=4:ACTIVE mlx5_0
card=nvidia
card=nvidia
driver=nvidia 550.54.15
usable=nvidia 2
tool=containerd
tool=python3
tool=systemctl
tool=conntrack
tool=iptables
tool=ethtool
tool=socat
manager=apt-get
package=conntrack 1:1.4.7-1+b2
service=containerd active enabled
module=overlay loaded
module=br_netfilter available
sysctl=net/ipv4/ip_forward 1
file=/etc/fstab IyBub3RoaW5nCg==
corral-facts end 1
"""
LIST: Final = """\
skus: {gpu: {cpu: 96, memory: 1000Gi, devices: {count: 2}}}
hosts:
  head: {address: 10.0.0.1, roles: [control-plane]}
  gpu1: {address: 10.0.0.2, roles: [worker], sku: gpu}
  gpu2: {address: 10.0.0.3, roles: [worker], sku: gpu}
"""


def text(*changes: tuple[str, str]) -> str:
    """The good host's text with parts replaced."""
    changed = GOOD
    for old, new in changes:
        assert old in changed, old
        changed = changed.replace(old, new)
    return changed


def facts(*changes: tuple[str, str]) -> Facts:
    """The good host's facts with parts of their text replaced."""
    return parse_facts(text(*changes).encode())


def of_host(number: int, *changes: tuple[str, str]) -> Facts:
    """The facts of another machine like the good one: its own name, id and address."""
    own = (
        ("10.0.0.2", f"10.0.0.{number}"),
        ("hostname=gpu1", f"hostname=host{number}"),
        ("machine=3d", f"machine={number:02x}"),
    )
    return facts(*changes, *own)


def hosts(document: str = LIST) -> Hosts:
    """A list of hosts."""
    return load_hosts(document)


def installed(host: Facts, chosen: Hosts, first: bool) -> Facts:
    """The facts of a host on which every step was done."""
    wanted = {
        files.MODULES_FILE: files.modules_text(),
        files.SYSCTLS_FILE: files.sysctls_text(),
        files.CONTAINERD_FILE: files.CONTAINERD,
        ours.CONTAINERD_UNIT_FILE: files.CONTAINERD_UNIT,
        ours.KUBELET_UNIT_FILE: files.KUBELET_UNIT,
        flannel.CNI_FILE: flannel.CNI,
    }
    if first:
        wanted[files.KUBEADM_FILE] = kubeadm.init_text(
            ours.MARK, chosen, chosen.hosts[0], host.reached, balancer.endpoint(chosen)
        )
        wanted[files.NETWORK_FILE] = flannel.network_text(ours.MARK, chosen.kubernetes.pod_subnet)
    there = ("/etc/kubernetes/kubelet.conf", *(("/etc/kubernetes/admin.conf",) * first))
    return replace(
        host,
        packages=dict.fromkeys(PACKAGES, "1"),
        files={path: text.encode() for path, text in wanted.items()},
        modules=dict.fromkeys(files.MODULES, "loaded"),
        sysctls={files.sysctl_name(name): value for name, value in files.SYSCTLS.items()},
        versions={"containerd": "v2.1.9", "kubeadm": "v1.34.4", "kubelet": "v1.34.4"},
        services=dict.fromkeys(("containerd", "kubelet"), Service("active", "enabled")),
        leftovers=there,
    )
