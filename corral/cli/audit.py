"""`corral audit`: who did what, by which rule, and what was refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from corral.cli.connection import connect
from corral.cli.output import output_option, paint, say, show, table
from corral.cli.paging import items
from corral.cli.times import time_of

if TYPE_CHECKING:
    from corral.client.schema import AuditRecord


@click.command("audit")
@click.option("--by", default="", metavar="NAME", help="Only what this account did or was refused.")
@click.option("--action", default="", metavar="ACTION", help="Only an action or a kind of them: job.stop, job.")
@click.option("--resource", default="", metavar="RESOURCE", help="Only a resource or a kind of them: user:ada, user.")
@click.option("--refused", is_flag=True, help="Only what was refused.")
@click.option("--since", default="", metavar="TIME", help="From this time or day on, or so far back (12h).")
@click.option("--until", default="", metavar="TIME", help="Until this time or day, or so long ago (1h).")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="The most lines to list.")
@click.option("--details", is_flag=True, help="What was changed, too.")
@output_option
def audit_command(
    by: str, action: str, resource: str, refused: bool, since: str, until: str, limit: int, details: bool, output: str
) -> None:
    """List the audit log, the latest line first (administrators).

    \b
    corral audit --since 1d --until 12h
    corral audit --since 2026-11-27 --until 2026-11-28
    corral audit --refused --by ada
    corral audit --resource user:ada --details
    corral audit --resource queue:research -o json
    """
    which = {"by": by, "action": action, "resource": resource, "refused": refused}
    times = {"begin": time_of("--since", since), "end": time_of("--until", until)}
    with connect() as client:
        found = items(client.audit, limit, **which, **times)
    if show(found, output, names=[str(each["seq"]) for each in found]):
        return
    if not found:
        say("The audit log has no such line.")
        return
    heads = ("AT", "BY", "ACTION", "RESOURCE", "RULE", "", *(("DETAILS",) if details else ()))
    click.echo(table(heads, [(*_row(each), *((_details(each),) if details else ())) for each in found]))


def _row(line: AuditRecord) -> tuple[str, ...]:
    refused = "" if line["allowed"] else paint("refused", "red")
    return line["at"], line["actor"], line["action"], line["resource"], line["rule"], refused


def _details(line: AuditRecord) -> str:
    """What a line says beside its columns, such as `priority: 10 to 100`; values that are not set are left out."""
    return ", ".join(
        f"{name}: {_value(value)}" for name, value in line["detail"].items() if value not in (None, "", [])
    )


def _value(value: Any) -> str:
    if isinstance(value, dict) and value.keys() == {"from", "to"}:
        return f"{_value(value['from'])} to {_value(value['to'])}"
    if isinstance(value, list):
        return " ".join(map(_value, value))
    return value if isinstance(value, str) else json.dumps(value)
