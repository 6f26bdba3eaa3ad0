"""Map OpenPAI's names to DNS labels, and name the annotations that keep a job's OpenPAI data.

OpenPAI's names may have capitals, dots and underscores. The translation writes the annotations; the framework and the
REST API read them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

JOB_TYPE: Final = "openpai"
_OF_OPENPAI: Final = "openpai.corral.dev/"
NAME: Final = f"{_OF_OPENPAI}name"
"""The job's OpenPAI name."""
PROTOCOL: Final = f"{_OF_OPENPAI}protocol"
"""The protocol as JSON text, with every secret masked."""
VERSION: Final = f"{_OF_OPENPAI}version"
"""The protocol version of the submitted file: "1" or "2"."""
ROLES: Final = f"{_OF_OPENPAI}roles"
"""JSON: Corral's role name to OpenPAI's."""
PORTS: Final = f"{_OF_OPENPAI}ports"
"""JSON: Corral's port name to OpenPAI's label."""
USER: Final = f"{_OF_OPENPAI}user"
"""The submitter."""
FOLDER: Final = f"{_OF_OPENPAI}folder"
"""The user's own folder on storages, for jobs of protocol v1 whose folder is not named after the user."""
DEFAULT_FILES: Final = f"{_OF_OPENPAI}default-fs-uri"
"""The URI of the cluster's default file system, as tasks see it; "" for none."""
SSH_KEYS: Final = f"{_OF_OPENPAI}ssh-keys"
"""The submitter's public keys, one per line, for jobs that request them."""
V1: Final = f"{_OF_OPENPAI}v1"
"""JSON: the whole job of protocol 1, validated and with its defaults."""
SECRETS_FOLDER: Final = ".openpai/secrets/"
"""Folder to which the protocol's own secrets are delivered; only the runtime reads it."""
REGISTRIES_FILE: Final = ".openpai/registries"
"""File with passwords of image registries; it goes to the puller of the image, not to the task."""
REGISTRIES: Final = "$registries"
"""Name of the registries' passwords among the protocol's own secrets."""
SECRET_PREFIX: Final = "openpai."
"""Prefix of the protocol's own secrets among those of the job."""
OWN_TAGS: Final = "openpai:"
"""Prefix of tags that only the server sets and removes, and by which it identifies jobs."""

_MOST: Final = 63
_NO_LABEL: Final = re.compile(r"[^a-z0-9]+")


def dns_label(name: str) -> str:
    """The DNS label closest to a name; "x" for a name without letters and digits."""
    return _NO_LABEL.sub("-", name.lower()).strip("-")[:_MOST].rstrip("-") or "x"


def dns_labels(names: Iterable[str]) -> dict[str, str]:
    """A distinct DNS label for each name; valid labels are kept, others get a number where theirs is taken."""
    given = tuple(dict.fromkeys(names))
    found = {name: name for name in given if dns_label(name) == name}
    taken = set(found)
    for name in given:
        if name in found:
            continue
        label, number = dns_label(name), 1
        while label in taken:
            number += 1
            label = f"{dns_label(name)[: _MOST - 6]}-{number}"
        found[name] = label
        taken.add(label)
    return {name: found[name] for name in given}
