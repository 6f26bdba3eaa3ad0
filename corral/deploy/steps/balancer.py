"""The balancer on each host: haproxy leads the host's connections to a control plane whose API is ready.

It is there where several hosts are control planes and the list names no address that reaches any of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from corral.deploy.checks.between_hosts import cluster_address
from corral.deploy.checks.components import control_planes
from corral.deploy.checks.facts import Facts
from corral.deploy.checks.ours import ADMIN, BALANCER_FILE, LOOPBACK, MARK, balanced_servers
from corral.deploy.hosts.reader import Host, Hosts
from corral.deploy.steps.kubeadm import endpoint_of

PACKAGE: Final = "haproxy"
SERVICE: Final = "corral-balancer"
ENDPOINT: Final = f"{LOOPBACK}:6444"
"""Where programs of a host find the API; no other host reaches it there."""
UNIT: Final = f"""{MARK}[Unit]
Description=Balancer of Kubernetes' API for this host
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Type=notify
User=haproxy
Group=haproxy
ExecStart=/usr/sbin/haproxy -Ws -f {BALANCER_FILE}
KillMode=mixed
SuccessExitStatus=143
Restart=always
RestartSec=2
LimitNOFILE=16384

[Install]
WantedBy=multi-user.target
"""
_HEAD: Final = f"""{MARK}global
  maxconn 4000
  nbthread 1

defaults
  mode tcp
  timeout connect 2s
  timeout client 24h
  timeout server 24h
  option clitcpka
  option srvtcpka
  option redispatch
  retries 3

listen kubernetes
  bind {ENDPOINT}
  balance leastconn
  option httpchk GET /readyz
  http-check expect status 200
  # Clients compare the certificate with the cluster's authority; the check sends and believes nothing.
  default-server check check-ssl verify none inter 2s rise 2 init-addr last,libc,none on-marked-down shutdown-sessions
"""


def is_needed(hosts: Hosts) -> bool:
    """Whether each host needs one."""
    return len(control_planes(hosts)) > 1 and not hosts.kubernetes.endpoint


def endpoint(hosts: Hosts) -> str:
    """The address of the API with its port, where any of several control planes answers; else ""."""
    if hosts.kubernetes.endpoint:
        return endpoint_of(hosts.kubernetes.endpoint)
    return ENDPOINT if is_needed(hosts) else ""


def configuration(hosts: Hosts, facts: Mapping[str, Facts], own: Facts) -> str:
    """The file of a host. The address of a control plane that was not reached is the one that the host has already."""
    there = balanced_servers(own)
    lines = (f"  server {each.name} {_server(each, facts, there)}\n" for each in control_planes(hosts))
    return _HEAD + "".join(lines)


def _server(plane: Host, facts: Mapping[str, Facts], there: Mapping[str, str]) -> str:
    if plane.name in facts:
        return endpoint_of(cluster_address(plane, facts[plane.name]))
    return endpoint_of(plane.internal_address or there.get(plane.name, "") or plane.address)


def unjoinable(hosts: Hosts, first: str, facts: Mapping[str, Facts], documents: str) -> Iterator[str]:
    """Why no control plane can be added to a running cluster: it was begun with a single one, and kubeadm keeps to that."""
    own = facts.get(first)
    if endpoint(hosts) and own is not None and ADMIN in own.leftovers and begun_alone(own, documents):
        yield (
            f"the cluster was begun with {first} as its only control plane, and kubeadm adds none to it: "
            "back it up, reset it, and make it again"
        )


def begun_alone(own: Facts, documents: str) -> bool:
    """Whether kubeadm's documents of a host, in that file, name no address that reaches several control planes."""
    text = own.files.get(documents, b"")
    return bool(text) and b"\ncontrolPlaneEndpoint:" not in text
