"""Patterns that recognise known faults in the last lines of a task's log, for a better message than an exit code.

Codes 221-235 and 254 and their phrases are those of the exit table (`corral.model.exits`); the expressions are Corral's.
"""

from __future__ import annotations

import os
import re
from typing import Final, NamedTuple

TAIL_BYTES: Final = 64 * 1024
_LINE: Final = 300


class Pattern(NamedTuple):
    """A known fault: its text in the log, and the exit codes under which it is searched (empty: any but 0)."""

    code: int
    phrase: str
    words: re.Pattern[bytes]
    exits: frozenset[int] = frozenset()


class Match(NamedTuple):
    """The fault that was recognised, and the line that matched."""

    code: int
    phrase: str
    line: str


def _pattern(code: int, phrase: str, words: str, *exits: int) -> Pattern:
    return Pattern(code, phrase, re.compile(words.encode(), re.MULTILINE | re.IGNORECASE), frozenset(exits))


_USAGE: Final = r"^\S+: error: (?:unrecognized arguments|the following arguments are required|argument .*invalid).*$"
"""The message of Python's argparse."""

_SAVE_PATH: Final = (
    r"^.*(?:RuntimeError: Parent directory .* does not exist|Unable to (?:synchronously )?create file .*No such file"
    r"|Failed to create a (?:NewWriteableFile|directory):).*$"
)
"""The messages of PyTorch, HDF5 and TensorFlow."""
_NO_IMAGE: Final = (
    r"^.*(?:manifest .*unknown|manifest for .* not found|pull access denied for|No such image:"
    r"|repository .* not found|invalid reference format).*$"
)
"""The messages of Docker and Podman before their exit code 125, which means that no container was started."""

PATTERNS: Final = (
    _pattern(223, "ContainerCudaUncorrectableECCError", r"^.*uncorrectable ECC error.*$"),
    _pattern(221, "ContainerTensorflowOOMKilled", r"^.*ResourceExhaustedError.*OOM when allocating.*$"),
    _pattern(226, "ContainerCudaOOMKilled", r"^.*CUDA(?: error:)?(?: |_ERROR_)OUT[ _]OF[ _]MEMORY.*$"),
    _pattern(224, "ContainerCudaVersionMismatch", r"^.*CUDA driver version is insufficient for CUDA runtime version.*$"),
    _pattern(225, "ContainerCudaDnnVersionMismatch", r"^.*Loaded runtime CuDNN library.*but source was compiled with.*$"),
    _pattern(222, "ContainerMPISegvFault", r"^.*(?:mpirun|mpiexec|ORTE).*exited on signal 11.*$"),
    _pattern(229, "ContainerIncorrectDataModelError", r"^RuntimeError: Error\(s\) in loading state_dict.*$"),
    _pattern(230, "ContainerInvalidSavePath", _SAVE_PATH),
    _pattern(231, "ContainerSyntaxError", r"^(?:SyntaxError|IndentationError|TabError): .*$"),
    _pattern(232, "ContainerImportError", r"^(?:ImportError|ModuleNotFoundError): .*$"),
    _pattern(233, "ContainerIndexOutOfRange", r"^IndexError: .*out of (?:range|bounds).*$"),
    _pattern(228, "ContainerIncorrectParameterError", _USAGE, 2),
    _pattern(234, "ContainerSigvFault", r"^.*Segmentation fault.*$", 139),
    _pattern(235, "ContainerEngineCoreDump", r"^.*core dumped.*$", 132, 134, 136, 139),
    _pattern(254, "ContainerImageNotExists", _NO_IMAGE, 125),
)  # fmt: skip


def recognise(exit_code: int, tail: bytes) -> Match | None:
    """The first pattern that matches the end of a failed command's log."""
    if exit_code == 0:
        return None
    for pattern in PATTERNS:
        if pattern.exits and exit_code not in pattern.exits:
            continue
        found = None
        for found in pattern.words.finditer(tail):  # noqa: B007  the last one tells most
            pass
        if found is not None:
            line = found[0].decode("utf-8", "replace").strip()
            return Match(pattern.code, pattern.phrase, line[:_LINE])
    return None


def tails_of(path: str) -> bytes:
    """The last bytes of a task's log; if standard output has a log of its own, its end comes first."""
    output = f"{path.removesuffix('.stderr')}.stdout" if path.endswith(".stderr") else ""
    return (tail_of(output) + b"\n" if output else b"") + tail_of(path)


def tail_of(path: str) -> bytes:
    """The last bytes of a log; empty if it cannot be read."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            return file.read(TAIL_BYTES)
    except OSError:
        return b""
