"""References in commands and variables to hosts, ports and secrets that are known only after tasks have started.

| form | stands for |
|---|---|
| `$(peer:ROLE-INDEX:host)` | the address of that task |
| `$(peer:ROLE-INDEX:port:NAME)` | the first port it was given under NAME |
| `$(peers:ROLE:host)` | the addresses of all tasks of ROLE in rank order, joined by commas |
| `$(peers:ROLE:host:port:NAME)` | `host:port` of each of them, joined by commas |
| `$(secret:PURPOSE)` | a text per purpose that only this job's tasks and the server can compute |
| `$(runtime)` | the runtime's own program, for commands that it runs |
| `$(plug-in)` | the words that the job type's runtime plug-in returns |

The two `peers` forms are expanded here, so that the runtime sees single tasks only. It fills in all other forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from corral.kernel.ids import TaskKey

RUNTIME: Final = "$(runtime)"
"""The word of a command that stands for the program of `corral.runtime`."""

PLUG_IN: Final = "$(plug-in)"
"""The word of a command that stands for the words that the runtime plug-in returns."""

_NAME: Final = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_PEER: Final = re.compile(rf"\$\(peer:(?P<role>{_NAME})-(?P<index>\d{{1,5}}):(?:host|port:(?P<port>{_NAME}))\)")
_PEERS: Final = re.compile(rf"\$\(peers:(?P<role>{_NAME}):host(?::port:(?P<port>{_NAME}))?\)")
_RESOLVED: Final = re.compile(r"\$\((?:peer|secret|runtime|plug-in)\b")


class Reference(NamedTuple):
    """A reference to other tasks in a text: `task` is an index, or None for all tasks of the role."""

    role: str
    task: int | None
    port: str
    """The port name; "" for the address alone."""


def host_of(task: TaskKey) -> str:
    """The reference to the address of `task`."""
    return f"$(peer:{task}:host)"


def port_of(task: TaskKey, name: str) -> str:
    """The reference to the first port of `task` with the name `name`."""
    return f"$(peer:{task}:port:{name})"


def endpoint_of(task: TaskKey, port: str) -> str:
    """The reference to `host:port` of `task`."""
    return f"{host_of(task)}:{port_of(task, port)}"


def secret(purpose: str) -> str:
    """The reference to a job secret for this purpose; never put it into a command."""
    return f"$(secret:{purpose})"


def expand_lists(text: str, members: Callable[[str], Sequence[TaskKey]]) -> str:
    """Replace each `peers` form in `text` by single references to the tasks that `members` returns for its role."""

    def joined(match: re.Match[str]) -> str:
        port = match["port"]
        return ",".join(endpoint_of(task, port) if port else host_of(task) for task in members(match["role"]))

    return _PEERS.sub(joined, text) if "$(peers:" in text else text


def references(texts: Iterable[str]) -> list[Reference]:
    """All references to tasks or roles in `texts`, in order."""
    found: list[Reference] = []
    for text in texts:
        if "$(peer" in text:
            found += [Reference(m["role"], int(m["index"]), m["port"] or "") for m in _PEER.finditer(text)]
            found += [Reference(m["role"], None, m["port"] or "") for m in _PEERS.finditer(text)]
    return found


def needs_runtime(texts: Iterable[str]) -> bool:
    """Whether any of `texts` has a reference that must be resolved inside the task."""
    return any("$(" in text and _RESOLVED.search(text) for text in texts)
