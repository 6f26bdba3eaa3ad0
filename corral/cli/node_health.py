"""Commands about the health of nodes: `corral nodes --health`, `corral nodes health NODE` and what administrators do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from corral.cli.connection import connect
from corral.cli.node_names import node_named
from corral.cli.output import age, output_option, paint, say, show, table
from corral.cli.paging import items

if TYPE_CHECKING:
    from corral.client import Client
    from corral.client.schema import HealthEntryView, HealthView

_COLOURS: Final = {"healthy": "green", "suspected": "yellow"}
why_option = click.option("--why", default="", help="The reason, kept in the node's history.")
node_argument = click.argument("node", metavar="NODE")


def show_health(client: Client, output: str) -> None:
    """Print the nodes with signs of trouble, the worst first."""
    found = client.node_health()["items"]
    if show(found, output, names=[each["node"] for each in found]):
        return
    if not found:
        say("No node has shown signs of trouble.")
        return
    headings = ("NODE", "HEALTH", "SCORE", "SINCE", "BY", "WHY")
    click.echo(table(headings, map(_row, found), right=frozenset({2})))


def _row(health: HealthView) -> tuple[object, ...]:
    state = paint(health["state"], _COLOURS.get(health["state"], "red"))
    since = age(health["since"]) if health["since"] else ""
    return health["node"], state, f"{health['score']:.1f}", since, health["by"], health["why"]


@click.command("health")
@node_argument
@click.option("-n", "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many at most.")
@output_option
def history_command(node: str, limit: int, output: str) -> None:
    """Show the signs of trouble of a node and its moves between states, newest first."""
    with connect() as client:
        node = node_named(client, node)
        found = items(client.node_history, limit, node=node)
    if show(found, output, names=[each["at"] for each in found]):
        return
    if not found:
        say(f"{node} has shown no signs of trouble.")
        return
    click.echo(table(("AGO", "WHAT", "DEVICE", "ADDS", "BY", ""), map(_entry, found), right=frozenset({0, 3})))


def _entry(entry: HealthEntryView) -> tuple[object, ...]:
    moved = entry["what"] == "moved"
    what = f"{entry['before']} → {entry['after']}" if moved else entry["what"]
    adds = f"+{entry['weight']:g}" if entry["weight"] else ""
    device = "" if entry["device"] is None else entry["device"]
    return age(entry["at"]), what, device, adds, entry["by"], paint(entry["reason"], dim=not moved)


@click.command("repairing")
@node_argument
@why_option
def repairing_command(node: str, why: str) -> None:
    """Take over a node: it stays closed until it is validated or called healthy."""
    node = _act(node, "repairing", why)
    say(f"{node} is repairing; corral nodes validate {node} has it checked.")


@click.command("validate")
@node_argument
@why_option
def validate_command(node: str, why: str) -> None:
    """Have a node validated: it is closed, and its validation job begins when nothing runs there."""
    node = _act(node, "validate", why)
    say(f"{node} is validating; corral nodes health {node} tells how it ended.")


@click.command("healthy")
@node_argument
@why_option
def healthy_command(node: str, why: str) -> None:
    """End the suspicion against a node without a validation; it takes tasks again."""
    node = _act(node, "healthy", why)
    say(f"{node} is healthy; its score is 0 again.")


def _act(node: str, act: str, why: str) -> str:
    """Move a node; returns its name with its engine."""
    with connect() as client:
        named = node_named(client, node)
        client.change_health(named, act, why=why)
    return named
