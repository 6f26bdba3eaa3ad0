"""`corral sim run` and `corral sim compare`: play a trace under policies, without a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from corral.cli.exit_codes import INTERRUPTED, OK
from corral.cli.output import show, table
from corral.cli.progress import progress_bar
from corral.cli.sim_options import FILE, pool_options, question_of, question_options, seed_option, tell_of_skipped
from corral.cli.sim_pool import play

if TYPE_CHECKING:
    from corral.control.journal.writer import JournalWriter
    from corral.sim.comparison import Question
    from corral.sim.results import Result
    from corral.sim.simulation import Simulation


@click.command("run")
@click.option("--policy", default="", metavar="NAME", help="A policy, or NAME+PART with another part, as fair+order.")
@click.option("--results", type=FILE, help="Write all times to this file (JSON), for `corral sim report`.")
@click.option("--journal", type=FILE, help="Write every input and decision to this file, for `corral replay run`.")
@seed_option
@question_options
def run_command(policy: str, results: Path | None, journal: Path | None, output: str, **options: Any) -> int:
    """Play a trace under one policy and print how it went.

    The scheduler, the launcher and control are those of a server; only time is virtual. The same options give the same
    result, which the digest shows. An interrupt prints what has ended so far, with exit code 130.
    """
    from corral.sim.results import write_result

    question = question_of(policy, options)
    trace = question.read()
    tell_of_skipped(trace)
    with _kept(question, journal) as writer:
        result, code = _played(question.simulation(trace, writer))
    if not show(result.figures(), output):
        _print([result.figures()])
    if results is not None:
        write_result(result, results)
    return code


def _kept(question: Question, journal: Path | None) -> AbstractContextManager[JournalWriter | None]:
    """Give the writer of the journal, if one is wanted."""
    from corral import __version__
    from corral.control.journal.files import journal_file

    return (
        nullcontext() if journal is None else journal_file(journal, question.named_rules, __version__, unexplained=True)
    )


def _played(simulation: Simulation) -> tuple[Result, int]:
    """Play to the end or to an interrupt; returns the result and the exit code."""
    try:
        with progress_bar(simulation.size, "Playing") as advance:
            return simulation.run(advance), OK
    except KeyboardInterrupt:
        return simulation.result(), INTERRUPTED


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
