"""Prometheus and Alertmanager in the values of Corral's chart, as the list of hosts asks for them."""

from __future__ import annotations

from typing import Any, Final

from corral.deploy.hosts.document import Monitoring
from corral.deploy.hosts.reader import Hosts
from corral.deploy.steps.bundle import Bundle
from corral.kernel.units import parse_memory

USER: Final = 65534
"""The user of both programs in their usual images."""


def data_folder(hosts: Hosts) -> str:
    """The folder of the data of both on the chosen host; the one above it is its own, and goes with a reset."""
    return f"{hosts.monitoring_folder}/data"


def values_of(hosts: Hosts, chosen: Monitoring, bundle: Bundle) -> dict[str, Any]:
    """The chart's values of monitoring."""
    digests = [bundle.images.get(name, "") for name in (chosen.prometheus, chosen.alertmanager)]
    size = chosen.retention_size
    found: dict[str, Any] = {
        "enabled": True,
        "boards": chosen.boards,
        "volume": {"hostPath": {"path": data_folder(hosts), "type": "Directory"}},
        "user": USER,
        "nodeSelector": {"kubernetes.io/hostname": chosen.host},
        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}],
        # Another image of the same name starts the pod again.
        "podAnnotations": {"corral.dev/images": " ".join(digests)},
        "prometheus": {
            "image": chosen.prometheus,
            "retention": f"{chosen.retention_days}d",
            "retentionBytes": parse_memory(size) if size else 0,
        },
        "alertmanager": {"image": chosen.alertmanager},
    }
    if chosen.node_exporter:
        found["nodeExporter"] = {"image": chosen.node_exporter}
    return found


def images_of(chosen: Monitoring) -> tuple[str, ...]:
    """The images that the list names for it."""
    return tuple(name for name in (chosen.prometheus, chosen.alertmanager, chosen.node_exporter) if name)
