"""Find the NameNodes of a name service in `hdfs-site.xml` and `core-site.xml` of the folder `HADOOP_CONF_DIR`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from corral.kernel.errors import InvalidInput

VARIABLE: Final = "HADOOP_CONF_DIR"
_FILES: Final = ("core-site.xml", "hdfs-site.xml")
"""Of a setting that both have, the later one's holds."""
_MOST_BYTES: Final = 4 << 20
_MOST_NODES: Final = 16
_ADDRESS: Final = re.compile(r"[A-Za-z0-9._\[\]:-]{1,255}:[0-9]{1,5}")


def addresses(service: str, *, secure: bool = False) -> tuple[str, ...]:
    """HOST:PORT of the WebHDFS of each NameNode of a name service; empty for what is none. `secure` is over TLS.

    Raises InvalidInput for files that cannot be read, and for a name service without addresses.
    """
    folder = os.environ.get(VARIABLE, "")
    if not folder or not service:
        return ()
    settings: dict[str, str] = {}
    for name in _FILES:
        settings |= _settings(Path(folder) / name)
    services = _listed(settings.get("dfs.nameservices", ""))
    # URIs are compared without case, as hosts are
    known = next((each for each in services if each.lower() == service.lower()), "")
    if not known:
        return ()
    key = f"dfs.namenode.{'https' if secure else 'http'}-address.{known}"
    nodes = _listed(settings.get(f"dfs.ha.namenodes.{known}", ""))[:_MOST_NODES]
    found = [settings.get(f"{key}.{node}", "") for node in nodes] if nodes else [settings.get(key, "")]
    for number, each in enumerate(found):
        if not _ADDRESS.fullmatch(each):
            wanted = f"{key}.{nodes[number]}" if nodes else key
            message = f'{folder} has {wanted} = "{each[:80]}"; it must be HOST:PORT.'
            raise InvalidInput("bad-hadoop-configuration", message)
    return tuple(found)


def _settings(file: Path) -> dict[str, str]:
    from xml.etree import ElementTree  # few servers have Hadoop

    try:
        with file.open("rb") as opened:
            content = opened.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InvalidInput("bad-hadoop-configuration", f"{file} cannot be read: {error.strerror}.") from None
    if len(content) > _MOST_BYTES or b"<!ENTITY" in content:
        message = f"{file} is too large, or has entities, which are not read."
        raise InvalidInput("bad-hadoop-configuration", message)
    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise InvalidInput("bad-hadoop-configuration", f"{file} cannot be read as XML: {error}.") from None
    found = {}
    for each in root.iter("property"):
        name, value = (each.findtext("name") or "").strip(), (each.findtext("value") or "").strip()
        if name:
            found[name] = value
    return found


def _listed(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]
