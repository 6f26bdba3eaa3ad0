"""The Kubernetes engine's settings, parsed from an administrator's words."""

from __future__ import annotations

import contextlib
import re
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from corral.engines.kubernetes.pods.template_policy import check_words
from corral.engines.kubernetes.volumes.storage_places import ANY_CLAIM, check_place
from corral.kernel.errors import InvalidInput
from corral.model.inventory import LEVELS
from corral.spec.dialects.accelerators import KINDS

INNER: Final = LEVELS[LEVELS.index("node") :]
"""The levels from the node down."""
TOPOLOGY: Final = (
    ("region", "topology.kubernetes.io/region"),
    ("zone", "topology.kubernetes.io/zone"),
    ("block", "topology.kubernetes.io/block"),
    ("rack", "topology.kubernetes.io/rack"),
)
"""Levels above the node, outermost first, and the node labels that name their cells."""
_LEVEL: Final = re.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class KubernetesSettings(msgspec.Struct, frozen=True):
    """One cluster as Corral uses it."""

    server: str
    """The permanent UID of this Corral server: the label that identifies its pods."""
    name: str = "kubernetes"
    """The engine's name, the first part of its nodes' names."""
    namespace: str = "corral"
    """The namespace of the pods, which must exist."""
    default_image: str = ""
    """The image of jobs that name none; "" refuses such jobs."""
    image_pull_secrets: tuple[str, ...] = ()
    service_account: str = ""
    """The pods' service account; "" is the namespace's default."""
    runtime_image: str = ""
    """Corral's own image, for sidecars; with "" the runtime works in the tasks' own images."""
    storage_places: tuple[str, ...] = (ANY_CLAIM,)
    """Places that jobs may mount to read and write data (`places`)."""
    log_copying: Literal["follow", "end", "off"] = "follow"
    """When pods' logs are copied."""
    log_limit_bytes: int = 0
    """The last bytes of a copied log that are kept; 0 keeps all."""
    storage_limit_bytes: int = 0
    """Bytes that a pod may write to its node, unless its job reserves more; 0 means no limit."""
    pod_templates: tuple[str, ...] = ()
    """The rights that roles' podTemplates may use on a node or in the namespace (`template_policy.WORDS`)."""
    reserved_secrets: tuple[str, ...] = ()
    """Secrets of the namespace that no podTemplate may use, beside those named `corral-…`."""
    registry: tuple[str, int] | None = None
    """Host and port of the cluster's own registry, whose certificate is watched; None where there is none."""
    first_port: int = 20_000
    """The first port for tasks. Each pod has its own address, and so all ports."""
    topology: tuple[tuple[str, str], ...] = TOPOLOGY
    devices: tuple[tuple[str, str], ...] = KINDS


def settings_of(
    server: str,
    *,
    namespace: str,
    default_image: str = "",
    image_pull_secrets: str = "",
    service_account: str = "",
    runtime_image: str = "",
    storage_places: str = ANY_CLAIM,
    log_copying: Literal["follow", "end", "off"] = "follow",
    log_limit_bytes: int = 0,
    storage_limit_bytes: int = 0,
    pod_templates: str = "",
    reserved_secrets: str = "",
    topology: str = "",
    devices: str = "",
    registry: str = "",
) -> KubernetesSettings:
    """Parse the settings: lists are separated by commas, pairs are `NAME=VALUE`.

    Raises InvalidInput that names the invalid word.
    """
    levels = _pairs("topology_labels", "LEVEL=LABEL", topology)
    for level, _ in levels:
        if not _LEVEL.fullmatch(level) or level in INNER:
            inner = ", ".join(INNER)
            message = f"topology_labels names the level {level!r}; levels are words such as rack, and not {inner}."
            raise InvalidInput("bad-setting", message)
    places = tuple(storage_places.replace(",", " ").split())
    for place in places:
        check_place(place)
    rights = tuple(pod_templates.replace(",", " ").split())
    check_words(rights)
    return KubernetesSettings(
        server=server,
        namespace=namespace,
        default_image=default_image,
        image_pull_secrets=tuple(name for name in image_pull_secrets.replace(",", " ").split() if name),
        service_account=service_account,
        runtime_image=runtime_image,
        storage_places=places,
        log_copying=log_copying,
        log_limit_bytes=log_limit_bytes,
        storage_limit_bytes=storage_limit_bytes,
        pod_templates=rights,
        reserved_secrets=tuple(reserved_secrets.replace(",", " ").split()),
        topology=levels or TOPOLOGY,
        devices=_pairs("device_resources", "RESOURCE=KIND", devices) + KINDS,
        registry=_endpoint("cluster_registry", registry),
    )


def _endpoint(name: str, text: str) -> tuple[str, int] | None:
    if not text:
        return None
    host, port, rest = None, None, ""
    with contextlib.suppress(ValueError):
        parts = urlsplit(f"//{text}")
        host, port, rest = parts.hostname, parts.port, parts.path + parts.query + parts.fragment
    if not host or not port or rest or "@" in text:
        raise InvalidInput("bad-setting", f"{name} is HOST:PORT, as 10.0.0.2:5443; {text!r} is none.")
    return host, port


def _pairs(name: str, shape: str, text: str) -> tuple[tuple[str, str], ...]:
    pairs = [word.partition("=") for word in text.replace(",", " ").split()]
    for left, _, right in pairs:
        if not left or not right:
            raise InvalidInput("bad-setting", f"{name} is a list of {shape}, separated by commas; {left!r} is none.")
    return tuple((left, right) for left, _, right in pairs)
