"""`corral deploy diff`: how the hosts differ from what their list describes."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from corral.cli.exit_codes import OK
from corral.cli.output import say, show, table

if TYPE_CHECKING:
    from corral.deploy.checks.components import Certificate
    from corral.deploy.checks.report import Survey
    from corral.deploy.hosts.reader import Hosts
    from corral.deploy.steps.bundle import Bundle
    from corral.deploy.steps.drift import Difference
    from corral.deploy.steps.membership import Node

DIFFERS: Final = 1
TROUBLE: Final = 2
"""The exit codes of diff(1)."""


def diff(whole: Hosts, path: Path, survey: Survey, bundle: Bundle | None, timeout: float, output: str) -> int:
    """Show every difference, and say on standard error what did not tell."""
    from corral.deploy.steps.drift import differences

    troubles = {name: refusal.message for name, refusal in survey.refusals.items()}
    nodes, certificates = asyncio.run(_told_by_the_cluster(whole, path.absolute(), survey, timeout, troubles))
    found = differences(whole, survey, nodes, certificates, datetime.now(UTC), bundle)
    data = {
        "cluster": whole.cluster,
        "differences": [each.to_document() for each in found],
        "silent": [{"name": name, "message": message} for name, message in troubles.items()],
    }
    if not show(data, output, names=list(dict.fromkeys(each.host for each in found))):
        _print(found, bundle is not None)
    for name, message in troubles.items():
        say(f"{name}: not compared: {message}")
    return TROUBLE if troubles else DIFFERS if found else OK


async def _told_by_the_cluster(
    whole: Hosts, path: Path, survey: Survey, timeout: float, troubles: dict[str, str]
) -> tuple[Mapping[str, Node] | None, Collection[Certificate]]:  # fmt: skip
    """The nodes, or None where they are not told, and the certificates; what does not answer becomes a trouble."""
    from corral.deploy.checks.components import control_planes
    from corral.deploy.remote.asking import statuses
    from corral.deploy.remote.membership import nodes_of
    from corral.deploy.remote.ssh import NotReached
    from corral.deploy.steps.node import started

    planes = control_planes(whole)
    up = [host for host in planes if host.name in survey.seen and started(survey.seen[host.name].facts)]
    if not up:
        return (None if any(host.name in survey.refusals for host in planes) else {}), ()
    found, lost = await statuses(up, path, seconds=timeout)
    troubles.update(lost)
    certificates = [each for status in found.values() for each in status.certificates]
    try:
        return await nodes_of(up[0], path), certificates
    except NotReached as error:
        troubles[up[0].name] = error.refusal.message
        return None, certificates


def _print(found: Sequence[Difference], with_bundle: bool) -> None:
    if found:
        rows = [(each.host, each.kind, each.what, each.wanted, each.found) for each in found]
        click.echo(table(("HOST", "KIND", "WHAT", "WANTED", "FOUND"), rows))
    hosts = len({each.host for each in found})
    what = "Nothing differs" if not found else f"{len(found)} differences on {hosts} hosts"
    say(f"{what}." if with_bundle else f"{what}. Programs and images are compared with a bundle (--bundle).")
