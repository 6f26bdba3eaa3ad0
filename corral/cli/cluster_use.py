"""Show how clusters are used that Corral shares with others: `corral nodes --others` and `corral queues --others`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from corral.cli.output import age, say, show, table
from corral.kernel.units import format_cpu, format_memory

if TYPE_CHECKING:
    from corral.client.schema import Amounts, ClusterUse


def show_cluster_use(found: Sequence[ClusterUse], output: str) -> None:
    """Print the queues and the applications of each cluster."""
    if show(found, output, names=[each["engine"] for each in found]):
        return
    if not found:
        say("No engine of this server shares its cluster with others.")
    for each in found:
        own, others = _words(each["corral"]), _words(each["others"])
        click.echo(f"{each['engine']}: Corral uses {own}; others use {others}")
        if each["trouble"]:
            say(each["trouble"])
            continue
        click.echo("\n" + _queues(each))
        if each["applications"]:
            click.echo("\n" + _applications(each))
        if each["leftOut"]:
            say(f"{each['leftOut']} more applications are not listed.")


def _queues(use: ClusterUse) -> str:
    rows = [
        (
            queue["name"] + (" *" if queue["corral"] else ""),
            queue["state"],
            f"{queue['capacity']:g}%",
            f"{queue['usedPercent']:g}%",
            *_columns(queue["used"]),
            queue["running"],
            queue["pending"],
        )
        for queue in use["queues"]
    ]
    headings = ("QUEUE (* CORRAL'S)", "STATE", "PROMISED", "USED", "DEVICES", "CPU", "MEMORY", "RUN", "WAIT")
    return table(headings, rows, right=frozenset(range(2, 9)))


def _applications(use: ClusterUse) -> str:
    rows = [
        (
            app["name"],
            app["user"],
            app["queue"],
            app["kind"],
            app["state"],
            *_columns(app["used"]),
            age(app["startedAt"]),
            app["id"],
        )
        for app in use["applications"]
    ]
    headings = ("APPLICATION", "USER", "QUEUE", "KIND", "STATE", "DEVICES", "CPU", "MEMORY", "AGE", "ID")
    return table(headings, rows, right=frozenset({5, 6, 7, 8}))


def _columns(used: Amounts) -> tuple[str, str, str]:
    return f"{used['devices']}", format_cpu(used["cpuMillis"]) or "0", format_memory(used["memoryBytes"]) or "0"


def _words(used: Amounts) -> str:
    devices, cpu, memory = _columns(used)
    return f"{devices} devices, {cpu} processors, {memory}"
