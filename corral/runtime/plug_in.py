"""What a runtime plug-in is given and returns.

A plug-in is a module with `prepare(task: PlugInTask) -> Prepared`. It runs after the barrier and before the command, in
the task on every engine. It imports only the standard library, this package and its own package, whose modules become
part of the zipapp. Its framework names the module in `TaskCommand.plug_in`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from corral.runtime.peers import Address

WORD = "$(plug-in)"
"""The word of a command that stands for the words that the plug-in returns."""


class PlugInTask(NamedTuple):
    """A task before its command; the paths are absolute."""

    steps: Mapping[str, Any]
    """The framework's instructions, as plain data."""
    peers: Mapping[str, Address]
    """By name (`worker-0`), the started tasks that the plan waited for."""
    key: str
    """The secret that all tasks of the job share."""
    secrets: Mapping[str, str]
    """By name, the secrets that are delivered in no other way."""
    work: str
    directory: str
    """The command's working directory."""
    shared: str
    """The folder that the command's container shares, whose user may be anybody; "" if the runtime starts the command."""


class Prepared(NamedTuple):
    """The words of the command, additional variables, and sentences for the task's log."""

    argv: list[str]
    env: dict[str, str]
    notes: list[str]


class PlugInFailed(Exception):
    """The task cannot be prepared; `code` is its exit code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def prepare(module: str, task: PlugInTask) -> Prepared:
    """Let the plug-in in `module` prepare a task.

    Raises PlugInFailed, also for a module that is not in this runtime; OSError for files that cannot be written.
    """
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        raise PlugInFailed(255, f"this task's runtime has no plug-in {module}: {error}") from error
    prepared: Prepared = found.prepare(task)
    return prepared
