"""Exit tables of FrameworkController and FrameworkLauncher, for jobs submitted in their formats.

Source: FrameworkController's predefined codes and its default `podFailureSpec`; FrameworkLauncher's default
`user-container-exit-spec`. Codes from 250 to 256 are those with which Corral's own runtime ends a task, and mean the
same for every job.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from corral.model.exits import classify, exit_spec
from corral.model.outcome import Completion, ExitClass
from corral.spec.job_options import STANDARD_TABLE

UNRECOGNIZED: Final = "ContainerUnrecognizedFailed"
_SIGNALS: Final = """
130 ContainerSigIntReceived TRANSIENT
131 ContainerSigQuitReceived TRANSIENT
132 ContainerSigIllReceived PERMANENT
134 ContainerSigAbrtReceived UNKNOWN
135 ContainerSigBusReceived PERMANENT
136 ContainerSigFpeReceived PERMANENT
137 ContainerSigKillReceived TRANSIENT
139 ContainerSigSegvReceived PERMANENT
141 ContainerSigPipeReceived PERMANENT
143 ContainerSigTermReceived TRANSIENT
"""
_BY_SIGNAL: Final = {
    int(code): (phrase, ExitClass[kind]) for code, phrase, kind in map(str.split, _SIGNALS.strip().splitlines())
}
_LAUNCHER: Final = """
130 ContainerSigIntReceived TRANSIENT
132 ContainerSigIllReceived PERMANENT
134 ContainerSigAbrtReceived UNKNOWN
135 ContainerSigBusReceived PERMANENT
136 ContainerSigFpeReceived PERMANENT
137 ContainerSigKillReceived TRANSIENT
139 ContainerSigSegvReceived PERMANENT
141 ContainerSigPipeReceived PERMANENT
143 ContainerSigTermReceived TRANSIENT
154 ContainerExitCodeLost TRANSIENT
193 ContainerTransientFailed TRANSIENT
194 ContainerNonTransientFailed PERMANENT
196 ContainerOutOfMemory PERMANENT
198 ContainerOutOfDisk TRANSIENT
"""
_BY_LAUNCHER: Final = {
    int(code): (phrase, ExitClass[kind]) for code, phrase, kind in map(str.split, _LAUNCHER.strip().splitlines())
}
_NEVER_STARTED: Final = {125: -1201, 126: -1202, 127: -1203, 128: -1204}
"""Exit codes of a container runtime that could not start the program, and the code of the exit table for each."""
_KNOWN_AS: Final = {-1300: -1200, -1205: -1204}
"""Codes of the exit table that FrameworkController does not distinguish from others."""
_PREDEFINED: Final = frozenset({200, 201, 210})
_RUNTIMES_OWN: Final = range(250, 257)


def classify_framework(code: int, diagnostics: str = "") -> Completion:
    """The completion of a Framework's task attempt that ended with `code`."""
    code = _NEVER_STARTED.get(code, _KNOWN_AS.get(code, code))
    if found := _BY_SIGNAL.get(code):
        return Completion(code, *found, diagnostics)
    if code <= 0 or code in _PREDEFINED or code in _RUNTIMES_OWN:
        spec = exit_spec(code)
        return Completion(code, spec.phrase, spec.exit_class, diagnostics)
    return Completion(code, UNRECOGNIZED, ExitClass.UNKNOWN, diagnostics)


def classify_launched(code: int, diagnostics: str = "") -> Completion:
    """The completion of a FrameworkLauncher task attempt that ended with `code`."""
    if found := _BY_LAUNCHER.get(code):
        return Completion(code, *found, diagnostics)
    if code <= 0 or code in _RUNTIMES_OWN:
        return classify(code, diagnostics)
    return Completion(code, UNRECOGNIZED, ExitClass.UNKNOWN, diagnostics)


_TABLES: Final[dict[str, Callable[[int, str], Completion]]] = {
    STANDARD_TABLE: classify,
    "frameworkcontroller": classify_framework,
    "frameworklauncher": classify_launched,
}
EXIT_TABLES: Final = tuple(_TABLES)
"""The names of the tables."""


def classify_by(table: str, code: int, diagnostics: str = "") -> Completion:
    """The completion by one of the tables that a document can name."""
    return _TABLES[table](code, diagnostics)
