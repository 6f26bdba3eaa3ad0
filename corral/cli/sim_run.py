"""`corral sim run` and `corral sim compare`: play a trace under policies, without a server."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from corral.cli.exit_codes import INTERRUPTED, OK
from corral.cli.output import show, table
from corral.kernel.units import counted

if TYPE_CHECKING:
    from corral.sim.comparison import Question
    from corral.sim.trace import Trace

_file = click.Path(dir_okay=False, path_type=Path)
Command = TypeVar("Command", bound=Callable[..., Any])


class _Number(click.FloatRange):
    """A number in a range; click's own range lets NaN pass."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        if isnan(found):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return found


def _shared(command: Command) -> Command:
    """Add the options that both commands have."""
    options = (
        click.option("--trace", type=_file, required=True, help="The file of jobs."),
        click.option("--format", "layout", metavar="NAME", default="",
                     help="The trace's format: plain, gavel, muri, openb, openpai, philly, pollux, shockwave, slurm or an "
                     "installed one; default: by its first line."),
        click.option("--profiles", type=click.Path(path_type=Path), metavar="FILE|FOLDER",
                     help="How fast jobs are: throughputs (JSON) of gavel or shockwave, the profiles of pollux."),
        click.option("--cluster", "machines", required=True, metavar="NxD|FILE",
                     help="Nodes x devices (8x8), with nodes per rack (64x8x16), or a file of documents."),
        click.option("--jobs", "most", type=click.IntRange(1), default=1_000_000, help="Only the first N jobs."),
        click.option("--skip-broken", is_flag=True, help="Leave out broken lines instead of stopping at the first."),
        click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="The seed of random draws."),
        click.option("--untold", is_flag=True, help="Jobs declare no longest duration."),
        click.option("--overestimate", type=_Number(0, 100), default=0.0, show_default=True,
                     help="Jobs declare up to this much more than they need: 0.5 is half again."),
        click.option("--restart-cost", type=_Number(0, 1e6), default=0.0, show_default=True,
                     help="Seconds that a start after an interruption costs."),
        click.option("--checkpoint", type=_Number(0, 1e9), default=0.0, show_default=True,
                     help="Seconds between checkpoints; 0: an interruption loses no work."),
        click.option("--scatter", type=_Number(0, 100), default=0.1, show_default=True,
                     help="By what part work takes longer for each level that a gang is spread over."),
        click.option("--stragglers", type=_Number(0, 1), default=0.0, show_default=True,
                     help="The part of jobs that run at half their speed."),
        click.option("--node-failures", type=_Number(0, 1000), default=0.0, show_default=True,
                     help="Failures of each node a day; it is back after an hour."),
        click.option("--review", type=_Number(1, 1e9), default=60.0, show_default=True,
                     help="Seconds between plans without an event, where time alone changes the order."),
        click.option("-o", "--output", type=click.Choice(("table", "json", "yaml")), default="table", show_default=True,
                     help="How to print it."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.command("run")
@click.option("--policy", default="", metavar="NAME", help="A policy, or NAME+order for preemption by its order.")
@click.option("--results", type=_file, help="Write all times to this file (JSON), for `corral sim report`.")
@_shared
def run_command(policy: str, results: Path | None, output: str, **options: Any) -> int:
    """Play a trace under one policy and print how it went.

    The scheduler, the launcher and control are those of a server; only time is virtual. The same options give the same
    result, which the digest shows. An interrupt prints what has ended so far, with exit code 130.
    """
    from corral.sim.results import write_result

    question = _question(policy, options)
    trace = question.read()
    _tell_of_skipped(trace)
    simulation, code = question.simulation(trace), OK
    try:
        with click.progressbar(length=simulation.size, label="Playing", file=sys.stderr) as bar:
            result = simulation.run(lambda ended: bar.update(ended - bar.pos))
    except KeyboardInterrupt:
        result, code = simulation.result(), INTERRUPTED
    if not show(result.figures(), output):
        _print([result.figures()])
    if results is not None:
        write_result(result, results)
    return code


@click.command("compare")
@click.option("--policy", "policies", multiple=True, required=True, metavar="NAME", help="Repeat it for each policy.")
@click.option("--results", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
              help="Write a file of all times for each policy; `corral sim report FOLDER/*` draws them.")  # fmt: skip
@click.option("--resume", is_flag=True, help="Use the results in --results that were made from the same options.")
@click.option("--processes", type=click.IntRange(1, 256), default=os.cpu_count() or 1, show_default="processors",
              help="How many run at once.")  # fmt: skip
@_shared
def compare_command(
    policies: Sequence[str], results: Path | None, resume: bool, processes: int, output: str, **options: Any
) -> int:
    """Play a trace under several policies, side by side.

    An interrupt ends the processes and prints the policies that are finished, with exit code 130. With --results and
    --resume the same command then plays only the others.
    """
    from corral.sim.comparison import answers
    from corral.sim.stored_results import StoredResults

    if resume and results is None:
        raise click.UsageError("--resume needs --results FOLDER.")
    questions = [_question(name, options) for name in dict.fromkeys(policies)]
    trace = questions[0].read()
    _tell_of_skipped(trace)
    for question in questions:
        question.simulation(trace)  # what cannot be played is refused before anything is
    stored = None if results is None else StoredResults(results, questions)
    found: dict[str, Mapping[str, Any]] = {}
    if resume and stored is not None:
        found = {question.policy: result.figures() for question, result in stored.found()}
        click.echo(f"Used {counted(len(found), 'result')} of {results}.", err=True)
    missing = [question for question in questions if question.policy not in found]
    code = OK
    try:
        with click.progressbar(length=len(missing), label="Playing", file=sys.stderr) as bar:
            for question, result in answers(missing, processes) if missing else ():
                found[question.policy] = result.figures()
                if stored is not None:
                    stored.keep(question, result)
                bar.update(1)
    except KeyboardInterrupt:
        code = INTERRUPTED
    rows = [found[each.policy] for each in questions if each.policy in found]
    if not show(rows, output):
        _print(rows)
    return code


@click.command("report")
@click.argument("results", nargs=-1, required=True, type=_file, metavar="RESULT...")
@click.option("--html", "page", type=_file, required=True, help="The page to write.")
def report_command(results: Sequence[Path], page: Path) -> int:
    """Draw the results of simulations as a page: figures, and charts of completion, queueing, devices and waiting jobs.

    A RESULT is a file that `sim run --results` or `sim compare --results` wrote. The page needs no other file.
    """
    from corral.sim.report_page import report_page
    from corral.sim.results import read_result

    page.write_text(report_page([read_result(file) for file in results]), encoding="utf-8")
    click.echo(page)
    return OK


def _question(policy: str, options: Mapping[str, Any]) -> Question:
    from corral.sim.comparison import Question
    from corral.sim.progress import Costs
    from corral.sim.simulation import Knobs

    knobs = Knobs(
        costs=Costs(options["restart_cost"], options["checkpoint"], options["scatter"]),
        told=not options["untold"],
        overestimate=options["overestimate"],
        stragglers=options["stragglers"],
        node_failures_per_day=options["node_failures"],
        seed=options["seed"],
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
    )


_HOURS: Final = {"mean_jct": "MEAN JCT", "p99_jct": "P99 JCT", "mean_queueing": "MEAN QUEUEING", "makespan": "MAKESPAN"}


def _tell_of_skipped(trace: Trace) -> None:
    if trace.skipped:
        line, problem = trace.skipped[0]
        said = f"Left out {counted(len(trace.skipped), 'broken line')}; the first is line {line}: {problem}."
        click.echo(said, err=True)


def _print(rows: Sequence[Mapping[str, Any]]) -> None:
    headings = ("POLICY", "JOBS", *_HOURS.values(), "UTILISATION", "INTERRUPTIONS", "DIGEST")
    lines = [
        (
            row["policy"],
            f"{row['ended']}/{row['jobs']}",
            *(f"{row[name] / 3600:,.2f} h" for name in _HOURS),
            f"{row['utilisation']:.1%}",
            row["interruptions"],
            row["digest"][:12],
        )
        for row in rows
    ]
    click.echo(table(headings, lines, right=frozenset(range(1, 8))))
