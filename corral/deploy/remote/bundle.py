"""Read a bundle: a folder with `bin`, `cni`, `images` and, if wanted, `packages`; or one with Hadoop alone."""

from __future__ import annotations

import hashlib
import json
import re
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from corral.deploy.steps.bundle import (
    CHART,
    CHART_NAME,
    HADOOP,
    HELM,
    KUBERNETES,
    PLUGINS,
    PLUGINS_FOLDER,
    PROGRAMS,
    RUNTIME,
    Bundle,
    BundleFile,
    ImageArchive,
)
from corral.kernel.errors import InvalidInput, NotFound

MOST_BYTES: Final = 16 * 1024**3
"""Bytes of all files of a bundle."""
_MOST_FILES: Final = 200
_MOST_INDEX: Final = 1024 * 1024
_MOST_MEMBERS: Final = 10_000
"""Files of an image archive that are looked through for its index."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,100}")
_IMAGE: Final = re.compile(r"[a-z0-9][A-Za-z0-9._:/-]{0,300}")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_ARCHITECTURES: Final = {62: "x86_64", 183: "aarch64"}
"""What ELF's e_machine says, in the words of `uname -m`."""


def bundle_of(folder: Path) -> Bundle:
    """The programs and images of a bundle; it may have Hadoop alone. Raises NotFound or InvalidInput."""
    if not folder.is_dir():
        raise NotFound("no-such-folder", f"There is no folder {folder}.")
    archive = _hadoop(folder / HADOOP)
    if archive is not None and not (folder / "bin").exists():
        _bounded(folder, [archive])
        return Bundle("", (), (), hadoop=_file(archive, archive.name))
    wanted = (("bin", (*RUNTIME, *KUBERNETES), PROGRAMS), ("cni", PLUGINS, PLUGINS_FOLDER))
    programs = [
        (_present(folder / part / name), f"{target}/{name}") for part, names, target in wanted for name in names
    ]
    extra = [(folder / HELM, f"{PROGRAMS}/helm"), (folder / CHART, CHART_NAME)]
    helm, chart = (_file(path, target) if path.is_file() else None for path, target in extra)
    images = [(path, path.name) for path in sorted((folder / "images").glob("*.tar"))]
    if not images or len(images) > _MOST_FILES:
        raise InvalidInput(
            "odd-bundle", f"{folder / 'images'} has {len(images)} .tar files instead of 1 to {_MOST_FILES}."
        )
    _bounded(folder, [path for path, _ in (*programs, *images)] + ([archive] if archive is not None else []))
    arch = _architecture([path for path, _ in programs] + ([helm.path] if helm else []))
    hadoop = _file(archive, archive.name) if archive is not None else None
    archives = tuple(ImageArchive(_file(path, name), images_of(path)) for path, name in images)
    return Bundle(arch, tuple(_file(path, target) for path, target in programs), archives, helm, chart, hadoop)


def _hadoop(folder: Path) -> Path | None:
    """The archive of a release of Hadoop, if there is one. Raises InvalidInput for several."""
    found = sorted(folder.glob("*.tar.gz")) if folder.is_dir() else []
    if len(found) > 1:
        raise InvalidInput("odd-bundle", f"{folder} has {len(found)} archives: leave one release of Hadoop there.")
    return found[0] if found else None


def _bounded(folder: Path, paths: Sequence[Path]) -> None:
    """Raises InvalidInput where the files of a bundle are too large together."""
    if sum(path.stat().st_size for path in paths if path.is_file()) > MOST_BYTES:
        raise InvalidInput("large-bundle", f"The files of {folder} are larger than {MOST_BYTES >> 30} GiB.")


def _present(path: Path) -> Path:
    if not path.is_file():
        raise NotFound("no-such-program", f"There is no file {path}: a bundle has it.")
    return path


def _file(path: Path, target: str) -> BundleFile:
    if not _NAME.fullmatch(path.name):
        raise InvalidInput("odd-name", f"Rename {path}: letters, digits, '.', '_', '+' and '-' may be in its name.")
    try:
        with path.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise InvalidInput("unreadable-file", f"{path} cannot be read: {error.strerror}.") from None
    return BundleFile(path, target, digest, path.stat().st_size)


def _architecture(programs: Sequence[Path]) -> str:
    """The architecture that all programs are for."""
    first, found = programs[0], ""
    for path in programs:
        with path.open("rb") as opened:
            head = opened.read(20)
        arch = _ARCHITECTURES.get(int.from_bytes(head[18:20], "little"), "") if head[:6] == b"\x7fELF\x02\x01" else ""
        if not arch:
            raise InvalidInput("odd-program", f"{path} is not a program for x86_64 or aarch64.")
        if found and arch != found:
            raise InvalidInput("odd-program", f"{path} is for {arch}, and {first} is for {found}.")
        found = arch
    return found


def images_of(path: Path) -> dict[str, str]:
    """The digests of the images in an archive of OCI's layout, by name. Raises InvalidInput."""
    try:
        found = dict(_described(_index(path)))
    except (tarfile.TarError, ValueError, OSError) as error:
        raise InvalidInput("odd-image", f"{path} is not an archive of images in OCI's layout: {error}.") from None
    if not found:
        raise InvalidInput("odd-image", f"{path} has no image with a name.")
    return found


def _index(path: Path) -> Any:
    with tarfile.open(path, "r:") as archive:
        for count, member in enumerate(archive):
            if count >= _MOST_MEMBERS:
                break
            if member.name.removeprefix("./") == "index.json" and member.isfile():
                opened = archive.extractfile(member)
                if member.size > _MOST_INDEX or opened is None:
                    raise ValueError("its index.json is too long")
                return json.load(opened)
    raise ValueError("it has no index.json")


def _described(index: Any) -> Iterator[tuple[str, str]]:
    manifests = index.get("manifests") if isinstance(index, Mapping) else None
    if not isinstance(manifests, list):
        raise ValueError("its index.json has no manifests")
    for each in manifests:
        notes = each.get("annotations") if isinstance(each, Mapping) else None
        name = notes.get("io.containerd.image.name", "") if isinstance(notes, Mapping) else ""
        if not name:
            continue
        digest = each.get("digest")
        if not (isinstance(name, str) and _IMAGE.fullmatch(name)):
            raise ValueError("the name of an image is odd")
        if not (isinstance(digest, str) and _DIGEST.fullmatch(digest)):
            raise ValueError(f"the digest of {name} is odd")
        yield name, digest
