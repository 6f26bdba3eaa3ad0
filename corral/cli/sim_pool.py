"""Play several simulations beside each other, with a progress bar, and go on after an interrupt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corral.cli.exit_codes import INTERRUPTED, OK
from corral.cli.progress import progress_bar
from corral.cli.sim_options import tell_of_skipped
from corral.kernel.units import counted

if TYPE_CHECKING:
    from corral.sim.comparison import Question

Figures = Mapping[str, Any]


def play(
    questions: Sequence[Question], folder: Path | None, resume: bool, processes: int, name: Callable[[Question], str]
) -> tuple[dict[Question, Figures], int]:
    """Return the figures of each question, and the exit code; after an interrupt those that are finished.

    With `folder`, each result is written there to a file of `name`. With `resume`, results of the same question that are
    there are not played again. All questions are about one trace and its machines.
    """
    from corral.sim.comparison import answers
    from corral.sim.stored_results import StoredResults

    if resume and folder is None:
        raise click.UsageError("--resume needs --results FOLDER.")
    _check(questions)
    stored = None if folder is None else StoredResults(folder, questions, name)
    found: dict[Question, Figures] = {}
    if resume and stored is not None:
        found = {question: result.figures() for question, result in stored.found()}
        click.echo(f"Used {counted(len(found), 'result')} of {folder}.", err=True)
    missing = [question for question in questions if question not in found]
    try:
        with progress_bar(len(missing), "Playing") as advance:
            for done, (question, result) in enumerate(answers(missing, processes) if missing else (), 1):
                found[question] = result.figures()
                if stored is not None:
                    stored.keep(question, result)
                advance(done)
    except KeyboardInterrupt:
        return found, INTERRUPTED
    return found, OK


def _check(questions: Sequence[Question]) -> None:
    """Refuse what cannot be played before anything is; assumptions that differ make no difference."""
    trace = questions[0].read()
    tell_of_skipped(trace)
    for question in {each.policy: each for each in questions}.values():
        question.simulation(trace)
