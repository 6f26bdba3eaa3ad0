"""The documents of a policy test: the files of a folder, as they are or as they were at a revision of git."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from corral.kernel.errors import InvalidInput, NotFound
from corral.model.configuration import Configuration, configuration_of
from corral.sim.files import read_bounded
from corral.sim.machines import Site, described_site, machines_file, plain_site, site_of
from corral.spec.configuration_file import Document, identity, load_site
from corral.spec.errors import path_text, shorten

SUFFIXES: Final = (".yaml", ".yml", ".json")
MOST_FILES: Final = 200
MOST_BYTES: Final = 16 << 20
"""Of all files of a folder together."""
_PATIENCE: Final = 60.0
"""Seconds that a command of git may take."""
_OF_A_HOOK: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
"""Variables that git sets for hooks; relative paths in them are wrong in another folder."""
_FILE_MODES: Final = ("100644", "100755")


@dataclass(frozen=True)
class DocumentFiles:
    """The texts of a folder's files."""

    name: str
    """The folder or the revision, for people."""
    files: tuple[tuple[str, bytes], ...]
    """Name and text of each."""

    def site(self, machines: str = "") -> Site:
        """Return the documents in force, with the machines of `machines` or of their own Cluster document.

        `machines` is `NODESxDEVICES` or a file with a Cluster document. Raises InvalidInput, NotFound, or SpecError with
        every problem of a file.
        """
        documents = self.documents()
        configuration = configuration_of(documents)
        if machines:
            if any(cluster.nodes for cluster in configuration.clusters.values()):
                raise InvalidInput(
                    "machines-twice", f"A Cluster document of {self.name} describes the machines; leave out --cluster."
                )
            given, clusters = _machines(machines)
            site = replace(given, configuration=configuration_of([*clusters, *documents]))
        else:
            site = site_of(configuration, self.name)
        _check(site.configuration, self.name)
        return site

    def documents(self) -> list[Document]:
        """Return the documents of all files; raises InvalidInput for one that is there twice, SpecError as `site` does."""
        found: dict[tuple[str, str], Document] = {}
        where: dict[tuple[str, str], str] = {}
        for name, text in self.files:
            for document in load_site(text, filename=name):
                kind, called = key = identity(document)
                if key in found:
                    raise InvalidInput(
                        "document-twice", f"{kind}/{called} of {self.name} is both in {where[key]} and in {name}."
                    )
                found[key], where[key] = document, name
        return list(found.values())


def documents_of(folder: Path) -> DocumentFiles:
    """Read the YAML and JSON files of a folder; raises NotFound, or InvalidInput if they are none, many or large."""
    if not folder.is_dir():
        raise NotFound("no-folder", f"The folder {folder} is not there.")
    files = sorted(file for file in folder.iterdir() if file.suffix in SUFFIXES and file.is_file())
    _check_sizes(str(folder), [file.stat().st_size for file in files])
    return DocumentFiles(str(folder), tuple((file.name, read_bounded(file)) for file in files))


def base_documents(base: str, folder: Path) -> DocumentFiles:
    """Read the base: a folder, or `folder` as it was at a revision of git. Raises NotFound or InvalidInput."""
    return documents_of(Path(base)) if Path(base).is_dir() else documents_at(base, folder)


def documents_at(revision: str, folder: Path) -> DocumentFiles:
    """Read the files of a folder as they were at a revision of git, without checking it out.

    Raises NotFound if there is no such revision or the folder had no documents then, InvalidInput for large ones.
    """
    if revision.startswith("-") or not revision.isprintable():
        raise InvalidInput("bad-revision", f"{shorten(revision)!r} cannot name a revision of git.")
    commit = _git(folder, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").decode().strip()
    if not commit:
        said = f"{revision[:100]} is neither a folder nor a revision of git in {folder}."
        raise NotFound("no-revision", f"{said} A shallow clone has to fetch it first.")
    name = f"{folder} at {revision}"
    blobs = []
    for line in _git(folder, "ls-tree", "-z", "-l", commit).decode(errors="replace").split("\0"):
        what, _, path = line.partition("\t")
        mode, _, blob, size = what.split() if path else ("", "", "", "0")
        if mode in _FILE_MODES and Path(path).suffix in SUFFIXES:
            blobs.append((path, blob, int(size)))
    _check_sizes(name, [size for _, _, size in blobs])
    return DocumentFiles(name, tuple((path, _git(folder, "cat-file", "blob", blob)) for path, blob, _ in sorted(blobs)))


def _git(folder: Path, *arguments: str) -> bytes:
    """Return what a command of git prints; nothing if it fails in silence.

    Raises NotFound without git, InvalidInput if it hangs or says why it fails.
    """
    environment = {name: value for name, value in os.environ.items() if name not in _OF_A_HOOK} | {"LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, env=environment, timeout=_PATIENCE, check=False
        )
    except FileNotFoundError:
        raise NotFound("no-git", "git is not installed here; name a folder as the base.") from None
    except subprocess.TimeoutExpired:
        raise InvalidInput("git-hangs", f"git did not answer within {_PATIENCE:g} s.") from None
    if done.returncode == 0:
        return done.stdout
    said = done.stderr[:1000].decode(errors="replace").partition("\n")[0].removeprefix("fatal: ").rstrip(".")
    if said:
        raise InvalidInput("git-failed", f"git cannot read {folder}: {said}.")
    return b""


def _machines(text: str) -> tuple[Site, list[Document]]:
    """The machines of `NODESxDEVICES` or of a file, and the documents of the file."""
    if (plain := plain_site(text)) is not None:
        return plain, []
    content = read_bounded(machines_file(text))
    return described_site(content, text), load_site(content, filename=text)


def _check(configuration: Configuration, name: str) -> None:
    findings = configuration.findings()
    if findings:
        path, problem = findings[0]
        where = f" at {path_text(path)}" if path else ""
        raise InvalidInput("documents-contradict", f"The documents of {name} contradict each other{where}: {problem}.")


def _check_sizes(name: str, sizes: list[int]) -> None:
    if not sizes:
        raise NotFound("no-documents", f"{name} has no file of {', '.join(SUFFIXES)}.")
    if len(sizes) > MOST_FILES or sum(sizes) > MOST_BYTES:
        raise InvalidInput(
            "too-many-documents", f"{name} has more than {MOST_FILES} documents, or more than {MOST_BYTES >> 20} MiB."
        )
