"""Commands that show queues, waiting jobs and cells: `corral queues`, `corral line` and `corral cells`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from corral.cli.cluster_use import show_cluster_use
from corral.cli.connection import connect
from corral.cli.draw import cell_tree, legend, queue_bar
from corral.cli.estimates import forecast_text, short_estimate
from corral.cli.output import age, fields, output_option, paint, say, show, table
from corral.cli.paging import items
from corral.cli.queue_history import show_history
from corral.cli.suspend_and_drain import ledger_text
from corral.kernel.units import DEVICE, counted, format_cpu, format_devices, format_memory

if TYPE_CHECKING:
    from corral.client.schema import CellState, LineEntry, QueueStanding, QueueView

_MOST_CELLS = 1000


@click.command("queues")
@click.argument("name", required=False, default="")
@click.option("--resource", default="devices", show_default=True, help="devices, devices/MODEL, cpu or memory.")
@click.option("--others", is_flag=True, help="Show the queues and applications of shared clusters (YARN) instead.")
@click.option("--history", is_flag=True, help="Show the waits, use, borrowing and lending of a NAME by week instead.")
@output_option
def queues_command(name: str, resource: str, others: bool, history: bool, output: str) -> None:
    """Show the share, use, borrowing and lending of queues as a tree; with a NAME, one queue with cells and ledger."""
    if history and not name:
        raise click.UsageError("--history needs the NAME of a queue.")
    with connect() as client:
        if history:
            show_history(client.queue_history(name), output)
            return
        if others:
            show_cluster_use(client.cluster_use()["items"], output)
            return
        if name:
            queue, ledger = client.queue(name), client.ledger(name)
            if not show(queue, output, names=[queue["name"]]):
                click.echo(_queue(queue))
                if ledger["lent"] or ledger["borrowed"]:
                    click.echo("\n" + ledger_text(ledger))
                if queue["standing"] and queue["standing"]["waiting"]:
                    say(f"corral line --queue {name} shows what waits.")
            return
        found = items(client.queues)
    if show(found, output, names=[queue["name"] for queue in found]):
        return
    if any(queue["standing"] is None for queue in found):
        say("The scheduler does not answer: only what is stored is shown.")
    click.echo(_queue_table(found, resource))


def _queue_table(queues: Sequence[QueueView], resource: str) -> str:
    scale = max((_scale(queue["standing"], resource) for queue in queues if queue["standing"]), default=0)
    headings = ("QUEUE", "USED", "", "OWNS", "FAIR", "LIMIT", "BORROWED", "LENT", "RUNS", "WAITS", "WANTED")
    rows = [_queue_row(queue, resource, scale) for queue in queues]
    return table(headings, rows, right=frozenset({1, 3, 4, 5, 6, 7, 8, 9, 10}))


def _queue_row(queue: QueueView, resource: str, scale: float) -> tuple[object, ...]:
    standing = queue["standing"]
    if standing is None:
        held = queue["devices"] if resource == "devices" else ""
        return (queue["name"], held, "", "", "", "", "", "", queue["running"], queue["waiting"], "")
    used, owns = standing["used"].get(resource, 0), own(standing, resource)
    borrowed, lent = standing["borrowed"].get(resource, 0), standing["lent"].get(resource, 0)
    return (
        "  " * standing["depth"] + queue["name"],
        spoken(resource, used) or "0",
        queue_bar(used, borrowed, owns, standing["limit"].get(resource), scale),
        spoken(resource, owns),
        spoken(resource, standing["fair"].get(resource, 0)),
        spoken(resource, standing["limit"].get(resource, 0)) if resource in standing["limit"] else "",
        paint(spoken(resource, borrowed), "yellow"),
        paint(spoken(resource, lent), "cyan"),
        standing["running"],
        standing["waiting"] or "",
        spoken(resource, standing["wanted"].get(resource, 0)),
    )


def _scale(standing: QueueStanding, resource: str) -> float:
    used, borrowed = standing["used"].get(resource, 0), standing["borrowed"].get(resource, 0)
    return float(max(used, own(standing, resource) + borrowed, standing["limit"].get(resource, 0)))


def own(standing: QueueStanding, resource: str) -> float:
    """Return a queue's own amount of a resource: its deserved quota, plus the devices of the cells that it owns."""
    deserved: float = standing["deserved"].get(resource, 0)
    return deserved + (standing["ownedDevices"] if resource == "devices" else 0)


def spoken(resource: str, amount: float) -> str:
    """Return an amount in its usual notation; "" for zero."""
    if not amount:
        return ""
    if resource == "cpu":
        return format_cpu(round(amount))
    return format_memory(round(amount)) if resource == "memory" else format_devices(round(amount * DEVICE))


def _queue(queue: QueueView) -> str:
    standing = queue["standing"]
    if standing is None:
        return fields({"Queue": queue["name"], "Running": queue["running"], "Waiting": queue["waiting"]})
    head = fields(
        {
            "Queue": queue["name"],
            "Below": standing["parent"],
            "Weight": f"{standing['weight']:g}",
            "Running": f"{counted(standing['running'], 'gang')}"
            + (f", {standing['guests']} as guests" if standing["guests"] else ""),
            "Waiting": counted(standing["waiting"], "gang"),
            "Lends to": _shares(standing["lentTo"]),
            "Borrows from": _shares(standing["borrowedFrom"]),
            "Pinned": ", ".join(standing["pinned"]),
        }
    )
    amounts: Mapping[str, Any] = standing
    columns = ("guaranteed", "deserved", "limit", "borrowingLimit", "fair", "used", "borrowed", "lent", "wanted")
    names = sorted({name for column in columns for name in amounts[column]} | {"devices"})
    rows = [(name, *(spoken(name, amounts[column].get(name, 0)) for column in columns)) for name in names]
    headings = ("", "GUARANTEED", "DESERVES", "LIMIT", "MAY BORROW", "FAIR", "USED", "BORROWED", "LENT", "WANTED")
    text = head + "\n\n" + table(headings, rows, right=frozenset(range(1, 10)))
    if standing["cells"]:
        cells = [
            (f"{cell['engine']} {cell['level']} {cell['model']}".strip(), cell["devices"])
            + tuple(cell[column] or "" for column in ("owned", "bound", "free", "lent", "missing"))
            for cell in standing["cells"]
        ]
        counted_as = ("CELLS", "DEVICES", "OWNED", "BOUND", "FREE", "LENT", "MISSING")
        text += "\n\n" + table(counted_as, cells, right=frozenset(range(1, 7)))
    return text


def _shares(amounts: dict[str, float]) -> str:
    return ", ".join(f"{name or '(nobody)'} {count}" for name, count in sorted(amounts.items()))


@click.command("line")
@click.option("--queue", default="", help="Only this queue and those below it.")
@click.option("-n", "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many at most.")
@output_option
def line_command(queue: str, limit: int, output: str) -> None:
    """Show the waiting jobs in scheduling order, with their requests, likely starts and reasons for waiting."""
    found: list[LineEntry] = []
    after, total, forecast = "", 0, None
    with connect() as client:
        while len(found) < limit:
            page = client.line(queue=queue, limit=min(1000, limit - len(found)), after=after)
            found, total, after = found + page["items"], page["total"], page["next"] or ""
            forecast = page.get("forecast")
            if not after:
                break
    if show(found, output, names=[entry["job"] for entry in found]):
        return
    if not found:
        say(
            "No job waits for a place. Jobs that are held (suspended, or for other jobs) are in corral ls --state waiting."
        )
        return
    headings = ("#", "JOB", "USER", "QUEUE", "PRIORITY", "WAITED", "STARTS IN", "WANTS", "WHY")
    click.echo(table(headings, (_line_row(entry) for entry in found), right=frozenset({0, 4, 5, 6})))
    if forecast is not None:
        say(f"Starts are from {forecast_text(forecast)}.")
    if total > len(found):
        say(f"{total - len(found)} more wait; --limit {total} shows all.")


def _line_row(entry: LineEntry) -> tuple[object, ...]:
    reason = entry["reason"]
    why = reason["message"] if reason else paint("not looked at yet", dim=True)
    if not entry["possible"]:
        why = paint("never: ", "red") + why
    elif entry["yielding"]:
        why = paint("next: ", "green") + why
    return (
        entry["position"],
        entry["name"],
        entry["user"],
        entry["queue"],
        entry["priority"],
        age(entry["submittedAt"]),
        short_estimate(entry.get("estimate")),
        wants(entry),
        why,
    )


def wants(entry: LineEntry) -> str:
    """Return a short text of the resources that a waiting gang requests."""
    devices, tasks = entry["devices"], counted(entry["tasks"], "task")
    model = f" {entry['model']}" if entry["model"] else ""
    what = f"{devices}{model} in {tasks}" if devices else f"{format_cpu(entry['cpuMillis'])} cpu in {tasks}"
    return what + (f", one {entry['level']}" if entry["level"] else "") + (" more" if entry["grows"] else "")


@click.command("cells")
@click.argument("cell", required=False, default="")
@click.option("--engine", default="", help="Only this engine's cells.")
@click.option("--depth", type=click.IntRange(0, 12), default=12, help="How many levels to show; as many as there are.")
@output_option
def cells_command(cell: str, engine: str, depth: int, output: str) -> None:
    """Show the cells (racks, nodes, switches) as a tree, with their owners, users, and guaranteed or guest use.

    A CELL is one of the ids that -o name prints, such as 'local|rack:r1'; a node is shown with each of its devices.
    """
    with connect() as client:
        found = client.cells(engine=engine, under=cell, depth=depth, limit=_MOST_CELLS)
    if show(found, output, names=list(_ids(found["cell"]))):
        return
    if not found["cell"]["devices"] and not found["cell"]["cells"]:
        say("No machines are known yet; corral doctor tells what to repair.")
        return
    click.echo("\n".join(cell_tree(found["cell"])))
    say(legend())


def _ids(cell: CellState) -> Iterator[str]:
    if cell["id"]:
        yield cell["id"]
    for inner in cell["cells"]:
        yield from _ids(inner)
