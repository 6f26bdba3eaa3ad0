"""The file of a bundle: made of a folder, and unpacked where it is used, each file compared with its hash."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from corral.deploy.remote.archive import add_file, add_text, digest_of, extract, new_archive
from corral.deploy.remote.bundle import bundle_of, images_of
from corral.deploy.remote.package_files import licence_of_deb, licence_of_wheel
from corral.deploy.steps.bundle_manifest import (
    FOLDERS,
    MANIFEST,
    MOST_FILES,
    MOST_MANIFEST,
    WHEELS,
    BundleManifest,
    Entry,
    is_path,
    licence_of,
    manifest_of,
    version_of,
)
from corral.kernel.errors import CorralError, InvalidInput, NotFound

_OWN_WHEELS: Final = ("corral-", "corral_client-")


def pack(folder: Path, target: Path, wheels: Path | None = None) -> BundleManifest:
    """Write a folder that is a bundle to a new file, whole or not at all, with the wheels of another folder.

    Raises NotFound, InvalidInput or Conflict.
    """
    whole = bundle_of(folder)
    found = {
        f"{part}/{path.name}": path
        for part in FOLDERS
        if (folder / part).is_dir()
        for path in sorted((folder / part).iterdir())
    }
    found |= {f"{WHEELS}/{path.name}": path for path in _wheels(wheels)} if wheels is not None else {}
    if len(found) > MOST_FILES:
        raise InvalidInput("large-bundle", f"{folder} has more than {MOST_FILES} files.")
    entries = {name: _entry(name, path) for name, path in found.items()}
    manifest = BundleManifest(whole.arch, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), entries)
    with new_archive(target, mode=0o666) as archive:
        add_text(archive, MANIFEST, manifest.text())
        for name, path in found.items():
            add_file(archive, name, path)
    return manifest


def _wheels(folder: Path) -> list[Path]:
    """The wheels of a folder, Corral's own among them. Raises NotFound or InvalidInput."""
    if not folder.is_dir():
        raise NotFound("no-such-folder", f"There is no folder {folder}.")
    found = sorted(folder.glob("*.whl"))
    if not any(path.name.startswith(_OWN_WHEELS) for path in found):
        raise InvalidInput(
            "no-wheels",
            f"{folder} has no wheel of Corral: make it where an index is, with pip wheel -w {folder} corral.",
        )
    return found


def _entry(name: str, path: Path) -> Entry:
    if not is_path(name) or not path.is_file():
        raise InvalidInput(
            "odd-name",
            f"Rename or remove {path}: a bundle has plain files with letters, digits and .+_~%:- in their names.",
        )
    images = tuple(sorted(images_of(path))) if name.startswith("images/") else ()
    return Entry(path.stat().st_size, digest_of(path), version_of(name, images), _licence(name, path, images), images)


def _licence(name: str, path: Path, images: tuple[str, ...]) -> str:
    """The licence by what a package says itself, or by the usual name of a program."""
    if name.startswith(f"{WHEELS}/"):
        return licence_of_wheel(path)
    return licence_of_deb(path) if name.endswith(".deb") else licence_of(name, images)


@contextmanager
def unpacked(file: Path) -> Iterator[Path]:
    """The folder of a bundle's file, beside it and until the end. Raises InvalidInput for an altered one."""
    try:
        scratch = tempfile.TemporaryDirectory(dir=file.absolute().parent, prefix=".corral-bundle-")
    except OSError as error:
        raise CorralError("unwritable-folder", f"{file.parent} cannot be written: {error.strerror}.") from None
    with scratch as name:
        _unpack(file, Path(name))
        yield Path(name)


def _unpack(file: Path, folder: Path) -> None:
    try:
        with tarfile.open(file, "r:") as archive:
            first = archive.next()
            if first is None or first.name != MANIFEST or not first.isfile() or first.size > MOST_MANIFEST:
                raise InvalidInput("odd-bundle", f"{file} is not a bundle.")
            opened = archive.extractfile(first)
            assert opened is not None
            manifest = manifest_of(opened.read())
            found = set()
            for member in archive:
                if member.name == MANIFEST:
                    continue
                entry = manifest.files.get(member.name)
                if entry is None or member.name in found or not member.isfile() or member.size != entry.size:
                    raise _altered(file, member.name)
                if digest_of(extract(archive, member, folder / member.name, entry.size)) != entry.digest:
                    raise _altered(file, member.name)
                found.add(member.name)
    except (tarfile.TarError, OSError) as error:
        raise InvalidInput("odd-bundle", f"{file} is not a bundle, or was cut off: {error}.") from None
    if missing := sorted(manifest.files.keys() - found):
        raise _altered(file, missing[0])


def _altered(file: Path, name: str) -> InvalidInput:
    shown = "".join(char for char in name if char.isprintable())[:100]
    return InvalidInput("altered-bundle", f"{file} was altered or cut off: {shown} is not as its manifest says.")
