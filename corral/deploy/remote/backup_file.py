"""The file of a cluster's backup: an archive that only its owner reads, whose parts are checked before they are used."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from corral.deploy.hosts.backup import MANIFEST, MOST_MANIFEST, PARTS, Manifest, Part, manifest_of, most_of
from corral.deploy.remote.archive import add_file, add_text, digest_of, extract, new_archive
from corral.kernel.errors import InvalidInput, NotFound


def unpack(archive: Path, folder: Path, wanted: Sequence[str] = PARTS) -> dict[str, Path]:
    """The wanted parts in an archive that a host made, as files of `folder`. Raises InvalidInput."""
    found: dict[str, Path] = {}
    try:
        with tarfile.open(archive, "r:") as opened:
            for member in opened:
                name = member.name.removeprefix("./")
                if member.isfile() and name in wanted:
                    found[name] = extract(opened, member, folder / name, most_of(name))
    except (tarfile.TarError, OSError) as error:
        raise InvalidInput("odd-archive", f"The host sent no archive that can be read: {error}.") from None
    if missing := [name for name in wanted if name not in found]:
        raise InvalidInput("odd-archive", f"The host sent no {missing[0]}.")
    return found


def write(target: Path, cluster: str, made: str, files: Mapping[str, Path]) -> Manifest:
    """Write a backup of these parts, whole or not at all, that only this account reads. Raises Conflict or CorralError."""
    parts = {name: Part(files[name].stat().st_size, digest_of(files[name])) for name in files}
    manifest = Manifest(cluster, made, parts)
    with new_archive(target, mode=0o600) as archive:
        add_text(archive, MANIFEST, manifest.text())
        for name in files:
            add_file(archive, name, files[name])
    return manifest


def read(file: Path, folder: Path) -> tuple[Manifest, dict[str, Path]]:
    """The manifest of a backup, and its parts as files of `folder`. Raises NotFound, or InvalidInput for an altered one."""
    found: dict[str, Path] = {}
    try:
        with tarfile.open(file, "r:") as archive:
            first = archive.next()
            if first is None or first.name != MANIFEST or not first.isfile() or first.size > MOST_MANIFEST:
                raise InvalidInput("odd-backup", f"{file} is not a backup of a cluster.")
            opened = archive.extractfile(first)
            assert opened is not None
            manifest = manifest_of(opened.read())
            for member in archive:
                if member.name == MANIFEST:
                    continue
                if member.name in found or member.name not in manifest.parts or not member.isfile():
                    raise _altered(file, member.name)
                if member.size != manifest.parts[member.name].size:
                    raise _altered(file, member.name)
                found[member.name] = extract(archive, member, folder / member.name, member.size)
    except FileNotFoundError:
        raise NotFound("no-such-file", f"There is no file {file}.") from None
    except (tarfile.TarError, OSError) as error:
        raise InvalidInput("odd-backup", f"{file} is not a backup of a cluster: {error}.") from None
    for name, part in manifest.parts.items():
        if name not in found or digest_of(found[name]) != part.digest:
            raise _altered(file, name)
    return manifest, found


def _altered(file: Path, name: str) -> InvalidInput:
    shown = "".join(char for char in name if char.isprintable())[:100]
    return InvalidInput("altered-backup", f"{file} was altered or cut off: {shown} is not as its manifest says.")
