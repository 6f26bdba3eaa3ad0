"""`corral alerts`: list alerts, silence them, and check rules files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from corral.cli.accounts import Listing
from corral.cli.connection import connect
from corral.cli.output import output_option, paint, say, show, table
from corral.cli.paging import items
from corral.cli.times import time_of
from corral.kernel.units import counted, parse_duration

if TYPE_CHECKING:
    from corral.client.schema import AlertView, PastAlertView

_COLOURS: Final = {"firing": "red", "pending": "yellow", "resolved": "green"}
_MOST_BYTES: Final = 1024 * 1024


_matchers_option = click.option(
    "-m",
    "--match",
    "matchers",
    multiple=True,
    metavar="MATCHER",
    help='Only these, such as severity="fatal"; repeat it.',
)


@click.group("alerts", cls=Listing, invoke_without_command=True)
@_matchers_option
@output_option
@click.pass_context
def alerts_command(context: click.Context, matchers: Sequence[str], output: str) -> None:
    """List alerts that are pending, fire, or ended within 15 minutes.

    Administrators see all alerts, others those about themselves or their jobs.

    \b
    corral alerts
    corral alerts -m severity=fatal -m 'node_name=~"rack3-.*"'
    corral alerts history --since 30d
    corral alerts silence node_name=rack3-n1 --for 2h --reason 'new fans'
    corral alerts check examples/prometheus/corral.rules.yml
    """
    if context.invoked_subcommand is not None:
        return
    with connect() as client:
        found = client.alerts(matchers)["items"]
    if show(found, output, names=[each["fingerprint"] for each in found]):
        return
    if not found:
        say("There are no alerts.")
        return
    click.echo(table(("ALERT", "STATE", "SEVERITY", "SINCE", "SOURCE", "SUMMARY"), [_row(each) for each in found]))


def _row(alert: AlertView) -> tuple[str, ...]:
    state = paint(alert["state"], _COLOURS.get(alert["state"], ""))
    if alert["silencedBy"]:
        state += f" (silenced by {', '.join(alert['silencedBy'])})"
    return alert["name"], state, alert["severity"], alert["since"], alert["source"], _summary(alert)


@alerts_command.command("history")
@_matchers_option
@click.option(
    "--since", default="7d", show_default=True, metavar="TIME", help="From this time or day on, or so far back (12h)."
)
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="The most alerts to list.")
@output_option
def list_history(matchers: Sequence[str], since: str, limit: int, output: str) -> None:
    """List the alerts that have fired, the latest first; they are kept for 90 days.

    \b
    corral alerts history --since 30d -m alertname=NodeNotReady
    """
    begin = time_of("--since", since)
    with connect() as client:
        found = items(client.alert_history, limit, matchers=matchers, begin=begin)
    if show(found, output, names=[each["fingerprint"] for each in found]):
        return
    if not found:
        say("No alert has fired.")
        return
    click.echo(table(("ALERT", "SEVERITY", "FIRED", "ENDED", "SOURCE", "SUMMARY"), [_past(each) for each in found]))


def _past(alert: PastAlertView) -> tuple[str, ...]:
    ended = alert["endedAt"] or paint("it fires", "red")
    return alert["name"], alert["severity"], alert["firedAt"], ended, alert["source"], _summary(alert)


def _summary(alert: AlertView | PastAlertView) -> str:
    labels = ", ".join(f'{name}="{value}"' for name, value in alert["labels"].items() if name != "alertname")
    return alert["annotations"].get("summary", labels)


@alerts_command.command("silences")
@output_option
def list_silences(output: str) -> None:
    """List the silences that have not ended (administrators)."""
    with connect() as client:
        found = client.silences()["items"]
    if show(found, output, names=[each["id"] for each in found]):
        return
    if not found:
        say("There are no silences.")
        return
    rows = [(each["id"], ", ".join(each["matchers"]), each["by"], each["ends"], each["reason"]) for each in found]
    click.echo(table(("ID", "MATCHERS", "BY", "ENDS", "REASON"), rows))


@alerts_command.command("silence")
@click.argument("matchers", nargs=-1, required=True)
@click.option("--for", "length", required=True, metavar="TIME", help="How long, such as 2h or 3d; at most 31d.")
@click.option("--reason", required=True, metavar="TEXT", help="The reason, which others read.")
def silence(matchers: Sequence[str], length: str, reason: str) -> None:
    """Silence the alerts that meet all MATCHERS, now and for a while (administrators).

    A MATCHER is alertname=NodeNotReady, node_name!=n1, instance=~"rack3.*" or severity!~"info|warn".
    """
    try:
        seconds = parse_duration(length)
    except ValueError as error:
        raise click.UsageError(f"--for: {error}") from None
    with connect() as client:
        made = client.silence(matchers, seconds=seconds, reason=reason)
    click.echo(made["id"])
    say(f"Silent until {made['ends']}; `corral alerts unsilence {made['id']}` ends it earlier.")


@alerts_command.command("unsilence")
@click.argument("silences", nargs=-1, required=True, metavar="ID...")
def unsilence(silences: Sequence[str]) -> None:
    """End silences by their ids (administrators)."""
    with connect() as client:
        for each in silences:
            client.unsilence(each)
            say(f"The silence {each} has ended.")


@alerts_command.command("check")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def check(files: Sequence[Path]) -> None:
    """Check rules files without a server: errors name the line, the rule and the position in its expression."""
    from corral.monitor.rules.rules_file import parse_rules

    for each in files:
        with each.open("rb") as file:
            groups = parse_rules(file.read(_MOST_BYTES + 1), str(each))
        rules = sum(len(group.rules) for group in groups)
        click.echo(f"{each}: {counted(rules, 'rule')} in {counted(len(groups), 'group')}, all can be evaluated.")
