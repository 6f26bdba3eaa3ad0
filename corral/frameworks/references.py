"""Why: hosts and ports exist only after tasks have started, so a command names them and the runtime fills them in.

| form | stands for |
|---|---|
| `$(peer:ROLE-INDEX:host)` | the address of that task |
| `$(peer:ROLE-INDEX:port:NAME)` | the first port it was given under NAME |
| `$(peers:ROLE:host)` | the addresses of all tasks of ROLE in rank order, joined by commas |
| `$(peers:ROLE:host:port:NAME)` | `host:port` of each of them, joined by commas |
| `$(secret:PURPOSE)` | text only this job's tasks and the server can compute, another for each purpose |
| `$(runtime)` | the runtime's own program, where a command is run by it |
| `$(openpai)` | the scripts of a job of OpenPAI, which the runtime writes |

The two `peers` forms are expanded here, so that the runtime knows single tasks only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from corral.kernel.ids import TaskKey

RUNTIME: Final = "$(runtime)"
"""The words of a command that stand for the program of `corral.runtime`."""

OPENPAI: Final = "$(openpai)"
"""The word of a command that stands for the scripts that the runtime makes for a job of OpenPAI."""

_NAME: Final = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_PEER: Final = re.compile(rf"\$\(peer:(?P<role>{_NAME})-(?P<index>\d{{1,5}}):(?:host|port:(?P<port>{_NAME}))\)")
_PEERS: Final = re.compile(rf"\$\(peers:(?P<role>{_NAME}):host(?::port:(?P<port>{_NAME}))?\)")
_RESOLVED: Final = re.compile(r"\$\((?:peer|secret|runtime|openpai)\b")


class Reference(NamedTuple):
    """One place where a text names other tasks: `task` is an index, or None for all of the role."""

    role: str
    task: int | None
    port: str
    """The port named, "" for the address alone."""


def host_of(task: TaskKey) -> str:
    """What stands for the address of `task`."""
    return f"$(peer:{task}:host)"


def port_of(task: TaskKey, name: str) -> str:
    """What stands for the first port of `task` called `name`."""
    return f"$(peer:{task}:port:{name})"


def endpoint_of(task: TaskKey, port: str) -> str:
    """What stands for `host:port` of `task`."""
    return f"{host_of(task)}:{port_of(task, port)}"


def secret(purpose: str) -> str:
    """What stands for a text that only this job's tasks and the server can compute; never put it into a command."""
    return f"$(secret:{purpose})"


def expand_lists(text: str, members: Callable[[str], Sequence[TaskKey]]) -> str:
    """`text` with each `peers` form replaced by single references to the tasks that `members` gives for its role."""

    def joined(match: re.Match[str]) -> str:
        port = match["port"]
        return ",".join(endpoint_of(task, port) if port else host_of(task) for task in members(match["role"]))

    return _PEERS.sub(joined, text) if "$(peers:" in text else text


def references(texts: Iterable[str]) -> list[Reference]:
    """Every task or role that `texts` name, in order."""
    found: list[Reference] = []
    for text in texts:
        if "$(peer" in text:
            found += [Reference(m["role"], int(m["index"]), m["port"] or "") for m in _PEER.finditer(text)]
            found += [Reference(m["role"], None, m["port"] or "") for m in _PEERS.finditer(text)]
    return found


def needs_runtime(texts: Iterable[str]) -> bool:
    """Whether any of `texts` has to be completed inside the task."""
    return any("$(" in text and _RESOLVED.search(text) for text in texts)
