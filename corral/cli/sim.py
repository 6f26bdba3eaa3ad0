"""`corral sim`: the simulator's commands."""

from __future__ import annotations

import click

from corral.cli.command_group import CommandGroup
from corral.cli.sim_report import report_command
from corral.cli.sim_run import compare_command, run_command
from corral.cli.sim_sweep import sweep_command
from corral.cli.sim_tables import tables_command


@click.group("sim", cls=CommandGroup)
def sim_command() -> None:
    """Simulate policies on traces, without a server."""


for command in (run_command, compare_command, sweep_command, report_command, tables_command):
    sim_command.add_command(command)
