"""The options that the commands which play traces have in common, and the question that they ask."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from corral.kernel.units import counted

if TYPE_CHECKING:
    from corral.sim.comparison import Question
    from corral.sim.trace import Trace

FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
Command = TypeVar("Command", bound=Callable[..., Any])


class Number(click.FloatRange):
    """A number in a range; click's own range lets NaN pass."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; fails for other text."""
        found = super().convert(value, param, ctx)
        if isnan(found):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return found


def seed_option(command: Command) -> Command:
    """Add `--seed`."""
    return click.option(
        "--seed", type=click.IntRange(0), default=0, show_default=True, help="The seed of random draws."
    )(command)


def pool_options(command: Command) -> Command:
    """Add the options of commands that play several simulations."""
    options = (
        click.option("--results", type=FOLDER, metavar="FOLDER",
                     help="Write all times of each simulation to a file; `corral sim report FOLDER/*` draws them."),
        click.option("--resume", is_flag=True, help="Use the results in --results that were made from the same options."),
        click.option("--processes", type=click.IntRange(1, 256), default=os.cpu_count() or 1,
                     show_default="processors", help="How many run at once."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def question_options(command: Command) -> Command:
    """Add the options that say what is played: trace, machines and assumptions."""
    options = (
        trace_options,
        click.option("--cluster", "machines", default="", metavar="NxD|FILE",
                     help="Nodes x devices (8x8), with nodes per rack (64x8x16), or a file of documents; without it those "
                     "of a journal."),
        assumption_options,
        click.option("--placements", is_flag=True,
                     help="Results say which devices each job held, for a Gantt chart and fragmentation."),
        click.option("-o", "--output", type=click.Choice(("table", "json", "yaml")), default="table", show_default=True,
                     help="How to print it."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def trace_options(command: Command) -> Command:
    """Add the options that name the trace."""
    options = (
        click.option("--trace", type=FILE, required=True, help="The file of jobs."),
        click.option("--format", "layout", metavar="NAME", default="",
                     help="The trace's format: plain, gavel, journal, muri, openb, philly, pollux, shockwave, slurm or one "
                     "of a package; default: by its first line."),
        click.option("--profiles", type=click.Path(path_type=Path), metavar="FILE|FOLDER",
                     help="How fast jobs are: throughputs (JSON) of gavel or shockwave, the profiles of pollux."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def assumption_options(command: Command) -> Command:
    """Add the options that say which jobs are played and what is assumed of them."""
    options = (
        click.option("--jobs", "most", type=click.IntRange(1), default=1_000_000, help="Only the first N jobs."),
        click.option("--skip-broken", is_flag=True, help="Leave out broken lines instead of stopping at the first."),
        click.option("--untold", is_flag=True, help="Jobs declare no maximum duration."),
        click.option("--overestimate", type=Number(0, 100), default=0.0, show_default=True,
                     help="Jobs declare up to this part more time than they need: 0.5 is 50 % more."),
        click.option("--underestimate", type=Number(0, 1), default=0.0, show_default=True,
                     help="Jobs declare up to this part less time than they need, and are ended then."),
        click.option("--restart-cost", type=Number(0, 1e6), default=0.0, show_default=True,
                     help="Seconds that a start after an interruption costs."),
        click.option("--checkpoint", type=Number(0, 1e9), default=0.0, show_default=True,
                     help="Seconds between checkpoints; 0: an interruption loses no work."),
        click.option("--scatter", type=Number(0, 100), default=0.1, show_default=True,
                     help="Each level that a gang is spread over makes its work longer by this part."),
        click.option("--stragglers", type=Number(0, 1), default=0.0, show_default=True,
                     help="The part of jobs that run at half their speed."),
        click.option("--node-failures", type=Number(0, 1000), default=0.0, show_default=True,
                     help="Failures of each node a day; it is back after an hour."),
        click.option("--reports", type=Number(0, 1e9), default=0.0, show_default=True,
                     help="Seconds between the reports of a job's progress; 0: jobs report nothing."),
        click.option("--elastic", is_flag=True,
                     help="Jobs with a profile run on any number of devices, and choose their batch size."),
        click.option("--review", type=Number(1, 1e9), default=60.0, show_default=True,
                     help="Seconds between plans without an event, where time alone changes the order."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def question_of(policy: str, options: Mapping[str, Any]) -> Question:
    """Return what the options ask of a policy."""
    from corral.sim.comparison import Question
    from corral.sim.progress import Costs
    from corral.sim.simulation import Knobs

    knobs = Knobs(
        costs=Costs(options["restart_cost"], options["checkpoint"], options["scatter"]),
        told=not options["untold"],
        overestimate=options["overestimate"],
        underestimate=options["underestimate"],
        stragglers=options["stragglers"],
        node_failures_per_day=options["node_failures"],
        seed=options["seed"],
        reports=options["reports"],
        elastic=options["elastic"],
    )
    return Question(
        trace=options["trace"],
        machines=options["machines"],
        policy=policy,
        knobs=knobs,
        format=options["layout"],
        profiles=options["profiles"],
        skip_broken=options["skip_broken"],
        most=options["most"],
        review_seconds=options["review"],
        placements=options["placements"],
    )


def tell_of_skipped(trace: Trace) -> None:
    """Print how many lines of the trace were left out, if any."""
    if trace.skipped:
        line, problem = trace.skipped[0]
        said = f"Left out {counted(len(trace.skipped), 'broken line')}; the first is line {line}: {problem}."
        click.echo(said, err=True)
