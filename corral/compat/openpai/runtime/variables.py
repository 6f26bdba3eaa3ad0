"""OpenPAI's `PAI_...` variables with addresses and ports, which are known only after the tasks have started.

Source: OpenPAI's runtime (its `genenv` step) and, for variables of the YARN era, DockerContainerScripts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from corral.runtime.peers import Address

MOST_BYTES = 768 * 1024
"""The most bytes of these variables together; the kernel limits a program's whole environment."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class Role(NamedTuple):
    """One task role: OpenPAI's name, Corral's name, the number of tasks, and Corral's port name by label."""

    name: str
    corral: str
    tasks: int
    ports: dict[str, str]


class Told(NamedTuple):
    """The variables, and whether those about single other tasks were left out to keep within `MOST_BYTES`."""

    variables: dict[str, str]
    shortened: bool = False


def roles_of(layout: Sequence[Mapping[str, Any]]) -> list[Role]:
    """Convert the framework's plain data to roles."""
    return [Role(str(role["name"]), str(role["corral"]), int(role["tasks"]), dict(role["ports"])) for role in layout]


def address_variables(
    roles: Sequence[Role], role: str, index: int, peers: Mapping[str, Address], directory: str
) -> Told:
    """The variables of task `index` of `role` (OpenPAI's name): its own addresses, and those of all known tasks."""
    mine = next(each for each in roles if each.name == role)
    me = peers.get(f"{mine.corral}-{index}", Address("127.0.0.1", {}))
    own = {label: me.ports.get(name, []) for label, name in mine.ports.items()}
    http, ssh = _first(own.get("http")), _first(own.get("ssh"))
    found = {
        "PAI_CURRENT_CONTAINER_IP": me.host,
        "PAI_CURRENT_CONTAINER_PORT": http,
        "PAI_CONTAINER_HOST_IP": me.host,
        "PAI_CONTAINER_HOST_PORT": http,
        "PAI_CONTAINER_SSH_PORT": ssh,
        "PAI_CONTAINER_HOST_PORT_LIST": "".join(f"{label}:{_joined(numbers)};" for label, numbers in own.items()),
        "PAI_TASK_ROLE_INSTANCES": ",".join(f"{each.name}:{at}" for each in roles for at in range(each.tasks)),
        "PAI_WORK_DIR": directory,
    }
    found |= {f"PAI_CONTAINER_HOST_{label}_PORT_LIST": _joined(numbers) for label, numbers in own.items()}
    for each in roles:
        hosts = [peers[name] for at in range(each.tasks) if (name := f"{each.corral}-{at}") in peers]
        web = each.ports.get("http", "")
        found[f"PAI_TASK_ROLE_{each.name}_HOST_LIST"] = ",".join(
            f"{host.host}:{_first(host.ports.get(web))}" for host in hosts
        )
    everyone = dict(_of_each(roles, peers))
    size = sum(len(name) + len(value) + 2 for name, value in everyone.items())
    if size > MOST_BYTES:
        own_only = [Role(mine.name, mine.corral, mine.tasks, mine.ports)]
        everyone = dict(_of_each(own_only, {f"{mine.corral}-{index}": me}))
    return Told(_callable(found | everyone), shortened=size > MOST_BYTES)


def _of_each(roles: Sequence[Role], peers: Mapping[str, Address]) -> Iterator[tuple[str, str]]:
    for role in roles:
        for index in range(role.tasks):
            peer = peers.get(f"{role.corral}-{index}")
            if peer is None:
                continue
            task = f"{role.name}_{index}"
            yield f"PAI_HOST_IP_{task}", peer.host
            for label, name in role.ports.items():
                numbers = peer.ports.get(name, [])
                yield f"PAI_PORT_LIST_{task}_{label}", _joined(numbers)
                yield f"PAI_{task}_{label}_PORT", _first(numbers)


def _callable(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables with names valid in a shell: a role or label of the YARN era may contain a dot."""
    return {name: value for name, value in variables.items() if _NAME.fullmatch(name)}


def _joined(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _first(numbers: Sequence[int] | None) -> str:
    return str(numbers[0]) if numbers else ""
