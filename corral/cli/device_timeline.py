"""The command `corral nodes timeline`: which jobs were on devices, and which are expected to be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from corral.cli.connection import connect
from corral.cli.node_names import node_named
from corral.cli.output import output_option, paint, say, show, table
from corral.kernel.units import counted

if TYPE_CHECKING:
    from corral.client.schema import DeviceStay, DeviceTimeline

_NODES_AT_ONCE = 50


@click.command("timeline")
@click.argument("node", required=False, default="")
@click.option(
    "--hours",
    type=click.FloatRange(0.1, 24),
    default=24.0,
    show_default=True,
    help="How many hours to look back, and ahead.",
)
@output_option
def timeline_command(node: str, hours: float, output: str) -> None:
    """Show which jobs were on the devices of nodes, or of one NODE (node or engine/node), and which are expected to be.

    What is expected is one course of the forecast, in which run times are drawn from those of ended jobs.
    """
    now = datetime.now(UTC)
    begin, end = (now + timedelta(hours=each) for each in (-hours, hours))
    pages: list[DeviceTimeline] = []
    with connect() as client:
        node = node_named(client, node) if node else ""
        after = ""
        while True:
            page = client.device_timeline(
                node=node, begin=begin.isoformat(), end=end.isoformat(), limit=_NODES_AT_ONCE, after=after
            )
            pages.append(page)
            after = page["next"] or ""
            if not after:
                break
    names = [each["name"] for page in pages for each in page["nodes"]]
    if show(pages[0] if node else pages, output, names=names):
        return
    if not names:
        say("No node with devices is known.")
        return
    rows = [row for page in pages for row in timeline_rows(page)]
    if rows:
        click.echo(table(("NODE", "DEVICES", "JOB", "USER", "QUEUE", "FROM", "TO"), rows))
    else:
        say("Nothing was on these devices, and nothing is expected there.")
    for trouble in dict.fromkeys(page["trouble"] for page in pages if page["trouble"]):
        say(trouble)
    if left_out := sum(page["pastLeftOut"] + page["expectedLeftOut"] for page in pages):
        say(f"{counted(left_out, 'stay')} left out; name a NODE, or look at fewer --hours.")


def timeline_rows(page: DeviceTimeline) -> list[tuple[str, ...]]:
    """Return the rows of a page, by node and time; what is only expected is dim."""
    found = [(stay, False) for stay in page["past"]] + [(stay, True) for stay in page["expected"]]
    found.sort(key=lambda each: (each[0]["node"], each[1], each[0]["begin"], each[0]["devices"]))
    return [_row(stay, expected=expected, at=page["at"]) for stay, expected in found]


def _row(stay: DeviceStay, *, expected: bool, at: str) -> tuple[str, ...]:
    begin = "now" if expected and stay["begin"] <= at else _clock(stay["begin"])
    end = stay["end"]
    until = ("later" if expected else "now") if end is None else _clock(end)
    devices = ",".join(map(str, stay["devices"]))
    told = (devices, stay["name"], stay["user"], stay["queue"], begin, until)
    return (stay["node"], *(paint(each, dim=True) if expected else each for each in told))


def _clock(time: str) -> str:
    return datetime.fromisoformat(time).astimezone().strftime("%d %b %H:%M")
