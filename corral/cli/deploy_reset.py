"""`corral deploy reset`: take back what `up` made, on all hosts or on some."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from corral.cli.exit_codes import OK, REFUSED
from corral.cli.output import say
from corral.kernel.errors import InvalidInput

if TYPE_CHECKING:
    from corral.deploy.hosts.reader import Hosts


def reset(whole: Hosts, names: set[str], path: Path, cluster: str) -> int:
    """Reset the hosts of these names, once the cluster's name is repeated, and take them out of a cluster that stays."""
    from corral.deploy.checks.components import control_planes
    from corral.deploy.remote.asking import reset as reset_hosts

    if cluster != whole.cluster:
        raise InvalidInput(
            "other-cluster", f"The list is of the cluster {whole.cluster}: repeat that name to reset it."
        )
    planes = {host.name for host in control_planes(whole)}
    staying = [host for host in whole.hosts if host.name in planes - names]
    if planes & names and names != {host.name for host in whole.hosts}:
        raise InvalidInput("needed-host", "A control plane is reset with all hosts together: leave out --host.")
    path = path.absolute()
    chosen = [host for host in whole.hosts if host.name in names]
    failed = asyncio.run(reset_hosts(chosen, path, lambda host, says: say(f"{host}: {says}")))
    if staying:
        for host in chosen:
            if host.name not in failed and (why := _forgotten(staying[0].name, whole, path, host.name)):
                failed[host.name] = why
    say(f"{len(chosen) - len(failed)} of {len(chosen)} hosts are reset.")
    return REFUSED if failed else OK


def _forgotten(plane: str, whole: Hosts, path: Path, name: str) -> str:
    """Take a host out of Kubernetes; returns why it could not."""
    from corral.deploy.remote.asking import do_on
    from corral.deploy.remote.ssh import NotReached
    from corral.deploy.steps.outcome import last_error

    host = whole.named(plane)
    assert host is not None
    try:
        code, text = asyncio.run(do_on(host, path, "forget_node", name))
    except NotReached as error:
        code, text = 1, error.refusal.message
    if not code:
        return ""
    say(f"{name}: it is still a node of Kubernetes: {last_error(text)}. On {plane}: kubectl delete node {name}")
    return last_error(text)
