"""Read the licence that a .deb file or a wheel names, without unpacking it; each part that is read is bounded."""

from __future__ import annotations

import contextlib
import io
import lzma
import re
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from corral.deploy.steps.licences import of_copyright, of_metadata
from corral.kernel.errors import InvalidInput

_MAGIC: Final = b"!<arch>\n"
_HEADER: Final = 60
"""Bytes of the header of a part of an ar archive."""
_MOST_PARTS: Final = 10
_MOST_OF_A_DEB: Final = 256 * 1024 * 1024
_MOST_UNPACKED: Final = 2 * 1024**3
_MOST_MEMORY: Final = "--memory=128MB"
_MOST_TEXT: Final = 1024 * 1024
_COPYRIGHT: Final = re.compile(r"(\./)?usr/share/doc/[^/]+/copyright")
_METADATA: Final = re.compile(r"[^/]+\.dist-info/METADATA")
_PACKED: Final = {"data.tar": "r|", "data.tar.gz": "r|gz", "data.tar.xz": "r|xz", "data.tar.bz2": "r|bz2"}
"""How the data of a package is read by Python itself; 3.11 has no Zstandard."""
_ZSTANDARD: Final = "data.tar.zst"


def licence_of_deb(path: Path) -> str:
    """The licences that a package's copyright file names; "" where it has none that can be read.

    One that is packed with Zstandard is read where this machine has the program zstd. Raises InvalidInput.
    """
    try:
        with path.open("rb") as opened:
            name, data = _data_of(opened)
        if name == _ZSTANDARD and (program := shutil.which("zstd")):
            with _unpacked(program, data) as stream:
                return of_copyright(_copyright(stream, "r|"))
        mode = _PACKED.get(name)
        return of_copyright(_copyright(io.BytesIO(data), mode)) if mode else ""
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, ValueError, OSError) as error:
        raise InvalidInput("odd-package", f"{path} is not a Debian package, or was cut off: {error}.") from None


def licence_of_wheel(path: Path) -> str:
    """The licence that a wheel's METADATA names; "" where it names none. Raises InvalidInput."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if _METADATA.fullmatch(name)]
            if len(names) != 1:
                raise ValueError("it has not one METADATA")
            with archive.open(names[0]) as opened:
                return of_metadata(opened.read(_MOST_TEXT).decode(errors="replace").splitlines())
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError, OSError) as error:
        raise InvalidInput("odd-wheel", f"{path} is not a wheel, or was cut off: {error}.") from None


def _data_of(opened: IO[bytes]) -> tuple[str, bytes]:
    """The name and content of the part of a package that has its files."""
    if opened.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("it is no ar archive")
    for _ in range(_MOST_PARTS):
        header = opened.read(_HEADER)
        if len(header) < _HEADER:
            break
        name, size = header[:16].decode("ascii").strip().rstrip("/"), int(header[48:58])
        if not 0 <= size <= _MOST_OF_A_DEB:
            raise ValueError(f"its part {name!r} is too large")
        if name.startswith("data.tar"):
            content = opened.read(size)
            if len(content) < size:
                raise ValueError("its last part is not whole")
            return name, content
        opened.seek(size + size % 2, io.SEEK_CUR)
    raise ValueError("it has no data")


@contextlib.contextmanager
def _unpacked(program: str, data: bytes) -> Iterator[IO[bytes]]:
    """What zstd unpacks, piece by piece as it is read; it ends with the last piece that is wanted."""
    with tempfile.TemporaryFile() as packed:
        packed.write(data)
        packed.seek(0)
        words = [program, "-d", "-c", "-q", _MOST_MEMORY]
        with subprocess.Popen(words, stdin=packed, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None
            try:
                yield process.stdout
            finally:
                process.kill()


def _copyright(stream: IO[bytes], mode: str) -> str:
    """The text of the copyright file; "" where there is none, or it is a link to that of another package."""
    with tarfile.open(fileobj=stream, mode=mode) as archive:  # type: ignore[call-overload]
        for member in archive:
            if member.offset > _MOST_UNPACKED:
                break
            if member.isfile() and _COPYRIGHT.fullmatch(member.name):
                found = archive.extractfile(member)
                return found.read(_MOST_TEXT).decode(errors="replace") if found is not None else ""
    return ""
