"""Show the history of a queue by week, for `corral queues NAME --history`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from corral.cli.output import say, show, span, table

if TYPE_CHECKING:
    from corral.client.schema import QueueHistory, QueueHistoryWeek

_HEADINGS = ("WEEK", "STARTED", "WAIT P50", "WAIT P95", "DEVICE-HOURS", "BORROWED", "LENT")


def show_history(history: QueueHistory, output: str) -> None:
    """Print the weeks of a queue, the latest first."""
    if show(history, output, names=[each["week"] for each in history["weeks"]]):
        return
    click.echo(table(_HEADINGS, map(history_row, history["weeks"]), right=frozenset(range(1, len(_HEADINGS)))))
    for sentence in history["unknown"]:
        say(sentence)


def history_row(week: QueueHistoryWeek) -> tuple[object, ...]:
    """Return one week as the cells of a table."""
    waits = ("" if each is None else span(each) for each in (week["waitP50"], week["waitP95"]))
    amounts = ("" if each is None else f"{each / 3600:,.1f}" for each in (week["used"], week["borrowed"], week["lent"]))
    return (week["week"], week["started"], *waits, *amounts)
