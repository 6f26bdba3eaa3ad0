"""Commands that show nodes and devices: `corral nodes` and `corral top`."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from corral.cli.cluster_use import show_cluster_use
from corral.cli.command_group import CommandGroup
from corral.cli.connection import connect
from corral.cli.device_history import DeviceHistory
from corral.cli.device_timeline import timeline_command
from corral.cli.job_use import JobUse, Use, by_user
from corral.cli.node_health import (
    healthy_command,
    history_command,
    repairing_command,
    show_health,
    validate_command,
)
from corral.cli.node_names import node_named
from corral.cli.node_use import NodeRow, NodeUse
from corral.cli.output import age, devices_of, output_option, paint, part_words, say, show, state, table
from corral.cli.paging import items

if TYPE_CHECKING:
    from corral.client.schema import DeviceView, Holding, NodeView, Top


class Nodes(CommandGroup):
    """A command group whose first word may also be a node, which is then shown."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Take a word that is no command as the NAME of a node."""
        return super().resolve_command(ctx, args if args[0] in self.commands else ["show", *args])


@click.group("nodes", cls=Nodes, invoke_without_command=True, subcommand_metavar="[NAME | COMMAND ...]")
@click.option("--others", is_flag=True, help="Show the queues and applications of shared clusters (YARN) instead.")
@click.option("--health", is_flag=True, help="Show the nodes with signs of trouble, the worst first, instead.")
@output_option
@click.pass_context
def nodes_command(context: click.Context, others: bool, health: bool, output: str) -> None:
    """List nodes, their devices and the jobs that hold them; with a NAME (node or engine/node), the devices of one node."""
    context.obj = output
    if context.invoked_subcommand is None:
        _show("", output, others=others, health=health)


@nodes_command.command("show", hidden=True)
@click.argument("name", required=False, default="")
@click.option("--others", is_flag=True, hidden=True)
@output_option
@click.pass_context
def show_command(context: click.Context, name: str, others: bool, output: str) -> None:
    """Show the devices of one node."""
    said = context.get_parameter_source("output") is not click.core.ParameterSource.DEFAULT
    _show(name, output if said else context.obj, others=others)


for _command in (timeline_command, history_command, repairing_command, validate_command, healthy_command):
    nodes_command.add_command(_command)


def _show(name: str, output: str, *, others: bool, health: bool = False) -> None:
    with connect() as client:
        if others:
            show_cluster_use(client.cluster_use()["items"], output)
            return
        if health:
            show_health(client, output)
            return
        if name:
            node = client.node(node_named(client, name))
            if not show(node, output, names=[node["name"]]):
                click.echo(_devices(node))
            return
        found = items(client.nodes)
    if show(found, output, names=[node["name"] for node in found]):
        return
    if not found:
        say("No machines are known yet; corral doctor tells what to repair.")
        return
    click.echo(
        table(
            ("NAME", "STATE", "DEVICES", "FREE", "CPU", "FREE", "MEMORY", "FREE", "MODEL", "CELLS"),
            (_node_row(node) for node in found),
            right=frozenset({2, 3, 4, 5, 6, 7}),
        )
    )


@click.command("top")
@click.option(
    "-i",
    "--interval",
    type=click.FloatRange(0.2, 3600),
    default=2.0,
    show_default=True,
    help="Seconds between two looks.",
)
@click.option("--once", is_flag=True, help="Print it once and end; also when the output is no terminal.")
def top_command(interval: float, once: bool) -> None:
    """Watch running jobs and free resources, live, until Ctrl-C.

    The line beside the devices shows how many were in use over the last half hour. USE is how much of their devices
    jobs used in the last ten minutes, or of a processor where no use of devices is known. Administrators see it of nodes,
    too: of the 20 that use least of their devices.
    """
    with connect() as client:
        history, use, nodes = DeviceHistory(client), JobUse(client), NodeUse(client)

        def looked() -> str:
            top = client.top()
            return _top(top, history.line(), use.of(job["id"] for job in top["jobs"]), nodes.rows())

        if once or not sys.stdout.isatty():
            click.echo(looked())
            return
        click.echo("\x1b[?1049h\x1b[?25l", nl=False)
        try:
            while True:
                screen = looked().split("\n")
                rows = _height() - 1
                click.echo("\x1b[H" + "".join(line + "\x1b[K\n" for line in screen[:rows]) + "\x1b[J", nl=False)
                time.sleep(interval)
        except KeyboardInterrupt:
            return
        finally:
            click.echo("\x1b[?25h\x1b[?1049l", nl=False)


def _top(top: Top, history: str, uses: Mapping[str, Use], nodes: Sequence[NodeRow]) -> str:
    total: Mapping[str, Any] = top["total"]
    free: Mapping[str, Any] = top["free"]
    beside = {"devices": f" {history}" if history else ""}
    bars = "   ".join(
        f"{name} {_bar(total[field] - free[field], total[field])}{beside.get(name, '')}"
        for name, field in (("devices", "devices"), ("cpu", "cpuMillis"), ("memory", "memoryBytes"))
        if total[field]
    )
    rows = [
        (
            job["name"],
            job["user"],
            state(job["state"]),
            devices_of(job),
            f"{job['tasks']['running']}/{job['tasks']['total']}",
            uses.get(job["id"], ""),
            age(job["startedAt"]),
            job["id"],
        )
        for job in top["jobs"]
    ]
    head = f"{top['at']}   {top['running']} running, {top['waiting']} waiting\n{bars}\n\n"
    headings = ("NAME", "USER", "STATE", "DEVICES", "TASKS", "USE", "RAN", "ID")
    users = by_user(top["jobs"], uses)
    below = f"\n\n{table(('USER', 'JOBS', 'DEVICES', 'USE'), users, right=frozenset({1, 2, 3}))}" if users else ""
    if nodes:
        below += f"\n\n{table(('NODE', 'DEVICES', 'USE'), (each.cells() for each in nodes), right=frozenset({1, 2}))}"
    return head + table(headings, rows, right=frozenset({3, 4, 5, 6})) + below


def _bar(used: float, total: float, width: int = 20) -> str:
    filled = round(width * used / total) if total else 0
    colour = "red" if used >= total else "yellow" if used > total * 0.8 else "green"
    return f"[{paint('█' * filled, colour)}{'·' * (width - filled)}] {100 * used / total:.0f}%"


def _node_row(node: NodeView) -> tuple[object, ...]:
    total, free = node["total"], node["free"]
    models = sorted({device["model"] or device["kind"] for device in node["devices"]})
    described = " (described)" if any(device["described"] for device in node["devices"]) else ""
    return (
        node["name"],
        _state(node),
        total["devices"],
        free["devices"],
        f"{total['cpuMillis'] / 1000:g}",
        f"{free['cpuMillis'] / 1000:g}",
        _gib(total["memoryBytes"]),
        _gib(free["memoryBytes"]),
        ", ".join(models) + described,
        " ".join(f"{level}={cell}" for level, cell in node["levels"].items()),
    )


def _state(node: NodeView) -> str:
    state = paint("ready", "green") if node["ready"] else paint(f"not ready: {node['reason']}", "red")
    cordon = node.get("cordon")
    if not cordon:
        return state
    what = {"": "cordoned", "now": "draining", "after-jobs": "draining after jobs"}[cordon["drain"]]
    if cordon["drain"] and not node["tasks"]:
        what = "drained"
    return f"{state}, " + paint(f"{what} by {cordon['by']}" + (f": {cordon['why']}" if cordon["why"] else ""), "yellow")


def _devices(node: NodeView) -> str:
    rows = [
        (
            device["index"],
            device["id"],
            device["model"] or device["kind"],
            " ".join(f"{level}={cell}" for level, cell in device["cells"].items()),
            "" if device["healthy"] else paint(device["healthReason"] or "unhealthy", "red"),
            _holders(device),
        )
        for device in node["devices"]
    ]
    head = table(
        ("NAME", "STATE", "DEVICES", "FREE", "CPU", "FREE", "MEMORY", "FREE", "MODEL", "CELLS"), [_node_row(node)]
    )
    return head + "\n\n" + table(("DEVICE", "ID", "MODEL", "CELLS", "HEALTH", "HELD BY"), rows)


def _holders(device: DeviceView) -> str:
    """Return the holders of the device or of parts of it."""
    if device["job"] is None:
        return paint("free" if device["free"] else "", dim=True)
    return ", ".join(map(_holder, (device["job"], *device["others"])))


def _holder(job: Holding) -> str:
    return f"{job['name']} {job['role']}-{job['index']} ({job['user']})" + part_words(job["share"])


def _gib(size: int) -> str:
    return f"{size / 1024**3:.1f}Gi"


def _height() -> int:
    import shutil

    return shutil.get_terminal_size().lines
