"""Why: OpenPAI's names may hold capitals, dots and underscores, Corral's are DNS labels; both sides must map them alike.

What a job keeps of its OpenPAI self stands in annotations, whose keys are here, so that whoever writes them (the
translation) and whoever reads them (the framework, the REST answers) need not know each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

JOB_TYPE: Final = "openpai"
_OF_OPENPAI: Final = "openpai.corral.dev/"
NAME: Final = f"{_OF_OPENPAI}name"
"""The job's own name."""
PROTOCOL: Final = f"{_OF_OPENPAI}protocol"
"""The protocol as JSON text, rendered, with every secret masked."""
VERSION: Final = f"{_OF_OPENPAI}version"
"""Of which version the document was that came: "1" or "2"."""
ROLES: Final = f"{_OF_OPENPAI}roles"
"""JSON: OpenPAI's name of each of Corral's roles."""
PORTS: Final = f"{_OF_OPENPAI}ports"
"""JSON: OpenPAI's label of each of Corral's port names."""
USER: Final = f"{_OF_OPENPAI}user"
"""Who submitted it."""
FOLDER: Final = f"{_OF_OPENPAI}folder"
"""Of a job of the first version, its user's own folder on storages, where that is not their name."""
DEFAULT_FILES: Final = f"{_OF_OPENPAI}default-fs-uri"
"""The URI of the cluster's own file system, as the job is told it; "" where there is none."""
SSH_KEYS: Final = f"{_OF_OPENPAI}ssh-keys"
"""The submitter's public keys, one a line, for jobs that ask for those."""
V1: Final = f"{_OF_OPENPAI}v1"
"""JSON: what only a job of protocol 1 has (dataDir, outputDir, codeDir, jobEnvs)."""
SECRETS_FOLDER: Final = ".openpai/secrets/"
"""Where roles have the protocol's own secrets delivered: the runtime keeps these to itself."""
REGISTRIES_FILE: Final = ".openpai/registries"
"""As what file the passwords of images' registries are delivered: to whoever pulls the image, not to the task."""
REGISTRIES: Final = "$registries"
"""What these are called among the protocol's own secrets."""
SECRET_PREFIX: Final = "openpai."
"""What the names of the protocol's own secrets begin with, among those of the job."""
OWN_TAGS: Final = "openpai:"
"""How the tags begin that the server gives by itself, and knows jobs by; nobody else gives or takes them."""
OWN_TAG_SAID: Final = f"Tags that begin with {OWN_TAGS} are the server's own; choose another."
"""What somebody is told who does."""

_MOST: Final = 63
_NO_LABEL: Final = re.compile(r"[^a-z0-9]+")


def dns_label(name: str) -> str:
    """The DNS label that is closest to a name; "x" for one without letters and digits."""
    return _NO_LABEL.sub("-", name.lower()).strip("-")[:_MOST].rstrip("-") or "x"


def dns_labels(names: Iterable[str]) -> dict[str, str]:
    """A DNS label for each name, no two alike; names that are labels keep theirs, the others yield in their order."""
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
