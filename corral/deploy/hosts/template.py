"""The text of a new `hosts.yaml`: an example with comments, or the data that another program's list became."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import yaml

EXAMPLE: Final = """\
# The machines of a cluster, for `corral deploy check` and `corral deploy plan`.
# Every field: docs/reference/hosts.md. Editors complete it from docs/schema/hosts.json.
kind: Hosts
cluster: lab                        # the cluster's name

# How SSH reaches the hosts; a group or a host may say otherwise, field by field.
# The account signs in with a key, and sudo asks it for no password.
ssh:
  user: admin
  # port: 22
  # key: ~/.ssh/id_ed25519          # without it, the keys that ssh itself tries

# Kinds of machines: `check` compares each machine of a kind with it.
skus:
  head: {cpu: 8, memory: 16Gi}
  gpu:
    cpu: 96
    memory: 1000Gi
    devices: {vendor: nvidia, count: 8, model: A100}   # nvidia, amd or ascend

# What several hosts have in common.
groups:
  gpus: {roles: [worker], sku: gpu}

# Roles: control-plane (one, three or five hosts), worker, storage, hadoop. A host may have several.
hosts:
  head1: {address: 10.0.0.11, roles: [control-plane], sku: head}
  store1: {address: 10.0.0.12, roles: [storage], dataFolder: /data}
  gpu1: {address: 10.0.0.21, group: gpus}
  gpu2:
    address: 10.0.0.22
    group: gpus
    # internalAddress: 192.168.0.22   # for traffic of the cluster, if it is another one
    # ssh: {port: 2222}

kubernetes:
  version: 1.34.4
  # endpoint: cluster.example.org   # needed with several control planes: an address that reaches any of them
  podSubnet: 10.244.0.0/16          # no host may have an address in these two
  serviceSubnet: 10.96.0.0/12

# Corral itself, once a bundle has these images.
# corral:
#   host: head1                     # runs the server; its disk has PostgreSQL's data, logs and code
#   image: registry.example/corral:0.1.0
#   postgresql: docker.io/library/postgres:17
#   # address: corral.example.org   # of the portal, port 30443
#   # certificate: portal.crt       # else it makes one of its own
#   # key: portal.key
#
# Prometheus and Alertmanager, which read Corral and tell it what fires.
# monitoring:
#   host: head1                     # runs both; its disk has their data
#   prometheus: registry.example/prometheus:3.5.0
#   alertmanager: registry.example/alertmanager:0.28.1
#   # retentionDays: 90             # 30 without it
#
# A registry of the cluster's own, filled from the bundle; nodes ask it before all others.
# registry:
#   host: head1
#
# HDFS and YARN on the hosts of the role hadoop, once a bundle has a release.
# hadoop:
#   master: store1                  # NameNode, ResourceManager and ZooKeeper
#   # clients: [10.0.0.5]           # may call it besides these hosts
"""


def text_of(data: Mapping[str, Any], origin: str) -> str:
    """The text of a document that was read from `origin`."""
    name = "".join(char if char.isprintable() else "?" for char in origin)
    head = f"# The machines of a cluster, read from {name}. Every field: docs/reference/hosts.md.\n"
    body = yaml.dump(dict(data), Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, default_flow_style=None)
    return head + body
