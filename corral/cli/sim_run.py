"""`corral sim run` and `corral sim compare`: play a trace under policies, without a server."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from corral.cli.exit_codes import INTERRUPTED, OK
from corral.cli.output import show, table
from corral.cli.sim_options import FILE, pool_options, question_of, question_options, seed_option, tell_of_skipped
from corral.cli.sim_pool import play


@click.command("run")
@click.option("--policy", default="", metavar="NAME", help="A policy, or NAME+PART with another part, as fair+order.")
@click.option("--results", type=FILE, help="Write all times to this file (JSON), for `corral sim report`.")
@seed_option
@question_options
def run_command(policy: str, results: Path | None, output: str, **options: Any) -> int:
    """Play a trace under one policy and print how it went.

    The scheduler, the launcher and control are those of a server; only time is virtual. The same options give the same
    result, which the digest shows. An interrupt prints what has ended so far, with exit code 130.
    """
    from corral.sim.results import write_result

    question = question_of(policy, options)
    trace = question.read()
    tell_of_skipped(trace)
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
@pool_options
@seed_option
@question_options
def compare_command(
    policies: Sequence[str], results: Path | None, resume: bool, processes: int, output: str, **options: Any
) -> int:
    """Play a trace under several policies, side by side.

    An interrupt ends the processes and prints the policies that are finished, with exit code 130. With --results and
    --resume the same command then plays only the others.
    """
    from corral.sim.stored_results import policy_name

    questions = [question_of(name, options) for name in dict.fromkeys(policies)]
    found, code = play(questions, results, resume, processes, policy_name)
    rows = [found[each] for each in questions if each in found]
    if not show(rows, output):
        _print(rows)
    return code


_HOURS: Final = {"mean_jct": "MEAN JCT", "p99_jct": "P99 JCT", "mean_queueing": "MEAN QUEUEING", "makespan": "MAKESPAN"}


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
