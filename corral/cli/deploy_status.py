"""`corral deploy status` and `corral deploy certs`: the components of a running cluster, and its certificates."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from corral.cli.exit_codes import OK, REFUSED, UNREACHABLE
from corral.cli.output import paint, say, show, table

if TYPE_CHECKING:
    from corral.deploy.checks.components import Certificate, Component
    from corral.deploy.hosts.reader import Hosts

_GOOD, _BAD, _SOON = ("✔", "green"), ("✘", "red"), ("!", "yellow")


def status(hosts: Hosts, path: Path, *, timeout: float, output: str) -> int:
    """Show every component of the cluster."""
    from corral.deploy.checks.components import components_of
    from corral.deploy.remote.asking import statuses

    found, lost = asyncio.run(statuses(hosts.hosts, path.absolute(), seconds=timeout))
    parts = list(components_of(hosts, found, lost))
    bad = [part for part in parts if not part.good]
    data = {"cluster": hosts.cluster, "components": [part.to_document() for part in parts]}
    if not show(data, output, names=sorted({part.host for part in bad})):
        _print_components(parts, bad)
    if not found:
        return UNREACHABLE
    return REFUSED if bad else OK


def _print_components(parts: Sequence[Component], bad: Sequence[Component]) -> None:
    rows = [
        (paint(*(_GOOD if part.good else _BAD)), part.host, part.name, part.state, part.version, part.since)
        for part in parts
    ]
    click.echo(table(("", "HOST", "COMPONENT", "STATE", "VERSION", "SINCE"), rows))
    logs = [part for part in bad if part.log]
    if logs:
        click.echo("\nTheir logs:")
    for part in logs:
        click.echo(f"  {part.host}: {part.log}")
    say(f"{len(parts) - len(bad)} of {len(parts)} components are well.")


def certificates(hosts: Hosts, path: Path, *, timeout: float, output: str) -> int:
    """Show when the certificates of the control planes end, and those of the cluster's own registry."""
    from corral.deploy.checks.components import SOON, hosts_with_certificates
    from corral.deploy.remote.asking import statuses

    asked = hosts_with_certificates(hosts)
    found, lost = asyncio.run(statuses(asked, path.absolute(), seconds=timeout))
    for name, why in lost.items():
        say(f"{name}: {why}")
    now = datetime.now(UTC)
    each = [one for status in found.values() for one in status.certificates]
    late = [one for one in each if one.days_left(now) < SOON]
    data = {"cluster": hosts.cluster, "certificates": [_document(one, now) for one in each]}
    if not show(data, output, names=[one.name for one in late]):
        _print_certificates(each, now, SOON)
    if not found:
        return UNREACHABLE
    untold = all(one.by_up for one in each)
    return REFUSED if lost or untold or any(one.days_left(now) < 0 for one in each) else OK


def _document(one: Certificate, now: datetime) -> dict[str, object]:
    return {
        "host": one.host, "name": one.name, "ends": one.ends.isoformat(), "daysLeft": one.days_left(now),
        "authority": one.authority,
    }  # fmt: skip


def _print_certificates(each: Sequence[Certificate], now: datetime, soon: int) -> None:
    rows = []
    for one in each:
        left = one.days_left(now)
        mark = _BAD if left < 0 else _SOON if left < soon else _GOOD
        kind = "authority" if one.authority else ""
        rows.append((paint(*mark), one.host, one.name, kind, one.ends.strftime("%Y-%m-%d %H:%M"), left))
    click.echo(table(("", "HOST", "CERTIFICATE", "KIND", "ENDS", "DAYS LEFT"), rows))
    late = [one for one in each if one.days_left(now) < soon]
    if any(not one.authority and not one.by_up for one in late):
        say("Renew them: corral deploy certs renew")
    if any(one.by_up for one in late):
        say("The registry's certificates end soon: the next corral deploy up makes new ones.")
    if any(one.authority for one in late):
        say(
            "An authority ends soon: kubeadm does not renew it. See kubernetes.io, 'Manual rotation of CA certificates'."
        )


def renew(hosts: Hosts, path: Path) -> int:
    """Renew the certificates of every control plane, one after the other."""
    from corral.deploy.checks.components import control_planes
    from corral.deploy.remote.asking import do_on
    from corral.deploy.remote.ssh import NotReached
    from corral.deploy.steps.outcome import last_error

    failed = False
    for host in control_planes(hosts):
        say(f"{host.name}: renewing its certificates and restarting its control plane")
        try:
            code, text = asyncio.run(do_on(host, path.absolute(), "renew_certificates"))
        except NotReached as error:
            say(f"{host.name}: not reached: {error.refusal.message}")
            failed = True
            continue
        if code:
            say(f"{host.name}: not renewed: it said {last_error(text)}. Run it again once that is mended.")
            failed = True
        else:
            click.echo(f"{host.name}: its certificates are renewed.")
    return REFUSED if failed else OK
