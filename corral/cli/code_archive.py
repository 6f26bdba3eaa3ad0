"""Pack a folder into a reproducible archive, so that unchanged code is never sent twice.

Entries are sorted, owners and times are dropped, and the gzip header has no time. `.corralignore` (or else
`.gitignore`), in the folder and below, excludes files by git's rules (https://git-scm.com/docs/gitignore).
"""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple

from corral.kernel.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec
    from pathspec.pattern import Pattern

IGNORE_FILES: Final = (".corralignore", ".gitignore")
_NEVER: Final = frozenset({".git", ".hg", ".svn"})
_MAX_FILES: Final = 200_000
_PIECE: Final = 1024 * 1024


class Archive(NamedTuple):
    """A packed folder: a temporary file without a name, its SHA-256, its size in bytes, and its number of files."""

    file: IO[bytes]
    digest: str
    size: int
    files: int

    def pieces(self, tell: Callable[[int], None] = lambda done: None) -> Iterator[bytes]:
        """Yield the archive in pieces; `tell` gets the number of bytes so far."""
        self.file.seek(0)
        done = 0
        while piece := self.file.read(_PIECE):
            yield piece
            done += len(piece)
            tell(done)


def pack(folder: Path) -> Archive:
    """Pack `folder`.

    Raises NotFound if it is not a folder, InvalidInput for links out of it or for too many files.
    """
    root = folder.resolve()
    if not root.is_dir():
        raise NotFound("no-such-folder", f"{folder} is not a folder; `code:` names the folder to pack.")
    packed = tempfile.TemporaryFile()  # noqa: SIM115 (the archive that is given back holds it)
    files = 0
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0, compresslevel=6) as zipped:
        with tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for path in _kept(root):
                _add(archive, root, path)
                files += 1
                if files > _MAX_FILES:
                    raise InvalidInput("too-many-files", f"{folder} has over {_MAX_FILES} files; use .corralignore.")
    size = packed.tell()
    packed.seek(0)
    digest = hashlib.file_digest(packed, "sha256").hexdigest()
    return Archive(packed, digest, size, files)


def _kept(root: Path) -> Iterator[Path]:
    """Yield all paths to pack in a fixed order, folders before their contents."""
    name = next((each for each in IGNORE_FILES if (root / each).is_file()), "")
    rules: list[tuple[Path, GitIgnoreSpec]] = []

    def walk(folder: Path, rules: list[tuple[Path, GitIgnoreSpec]]) -> Iterator[Path]:
        own = _rules(folder / name) if name else None
        here = [*rules, (folder, own)] if own is not None else rules
        for entry in sorted(os.scandir(folder), key=lambda each: each.name):
            path = Path(entry.path)
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name in _NEVER or _ignored(path, is_folder, here):
                continue
            yield path
            if is_folder:
                yield from walk(path, here)

    yield from walk(root, rules)


def _rules(file: Path) -> GitIgnoreSpec | None:
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(file.read_text().splitlines())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InvalidInput("unreadable-ignore-file", f"{file} cannot be used: {error}.") from None


def _ignored(path: Path, is_folder: bool, rules: list[tuple[Path, GitIgnoreSpec]]) -> bool:
    """Return whether the rules exclude `path`; rules in a deeper folder take precedence."""
    for folder, spec in reversed(rules):
        relative = path.relative_to(folder).as_posix() + ("/" if is_folder else "")
        for pattern in reversed(spec.patterns):
            if pattern.include is not None and _fits(pattern, relative):
                return pattern.include
    return False


def _fits(pattern: Pattern, path: str) -> bool:
    """Return whether a pattern is of `path` itself.

    pathspec lets the pattern of a folder fit everything in it, too, which is decided when the walk is at the folder.
    """
    found = pattern.match_file(path)
    if found is None:
        return False
    below = found.match.groupdict().get("ps_d")
    return below is None or found.match.end("ps_d") == len(path)


def _add(archive: tarfile.TarFile, root: Path, path: Path) -> None:
    relative = path.relative_to(root).as_posix()
    status = path.lstat()
    entry = tarfile.TarInfo(relative)
    entry.mode = 0o755 if status.st_mode & stat.S_IXUSR else 0o644
    if stat.S_ISDIR(status.st_mode):
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(entry)
    elif stat.S_ISLNK(status.st_mode):
        target = os.readlink(path)
        if os.path.isabs(target) or not (path.parent / target).resolve().is_relative_to(root):
            message = f"{relative} links to {target}, outside of the folder; copy it or ignore it in .corralignore."
            raise InvalidInput("link-out-of-code", message)
        entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, target, 0o777
        archive.addfile(entry)
    elif stat.S_ISREG(status.st_mode):
        with path.open("rb") as content:
            entry.size = os.fstat(content.fileno()).st_size
            archive.addfile(entry, content)
