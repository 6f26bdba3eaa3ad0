"""The command `corral policy test`: check assertions about documents on a trace, without a server."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from corral.cli.command_group import CommandGroup
from corral.cli.exit_codes import JOB_FAILED, OK
from corral.cli.output import paint, table
from corral.cli.policy_shadow import shadow_command
from corral.cli.sim_options import (
    FILE,
    FOLDER,
    assumption_options,
    question_of,
    seed_option,
    tell_of_skipped,
    trace_options,
)
from corral.kernel.errors import CorralError, InvalidInput

if TYPE_CHECKING:
    from corral.sim.policy_test.played import Report, Side
    from corral.spec.assertions.syntax import Assertion

_MOST_BYTES: Final = 1 << 16
"""Of a file of assertions."""
FORMS: Final = ("table", "markdown", "junit", "json")
_ENDINGS: Final = {".md": "markdown", ".xml": "junit", ".json": "json", ".txt": "table"}


@click.group("policy", cls=CommandGroup)
def policy_command() -> None:
    """Try queues and policies before they are applied."""


policy_command.add_command(shadow_command)


@policy_command.command("test")
@trace_options
@click.option("--documents", type=FOLDER, required=True, metavar="FOLDER", help="The documents to test.")
@click.option(
    "--base",
    default="",
    metavar="FOLDER|REVISION",
    help="The documents to compare with: another folder, or this one at a revision of git.",
)
@click.option(
    "--assert",
    "written",
    multiple=True,
    metavar="EXPRESSION",
    help="What must hold, such as 'wait.p95(queue=research) <= 1.1 * base'; repeat it.",
)
@click.option(
    "--assertions",
    "listed",
    type=FILE,
    metavar="FILE",
    help="A file with an assertion on each line; # begins a comment.",
)
@click.option(
    "--cluster",
    "machines",
    default="",
    metavar="NxD|FILE",
    help="The machines, where the documents describe none: nodes x devices, or a file with a Cluster document.",
)
@assumption_options
@seed_option
@click.option(
    "--processes",
    type=click.IntRange(1, 2),
    default=min(2, os.cpu_count() or 1),
    show_default="processors",
    help="How many processes; with 2 the base plays beside the documents.",
)
@click.option("-o", "--output", type=click.Choice(FORMS), default="table", show_default=True, help="How to print it.")
@click.option(
    "--out",
    "files",
    type=FILE,
    multiple=True,
    metavar="FILE",
    help="Write it to a file as well, as its ending says: .md, .xml (JUnit), .json or .txt; repeat it.",
)
@click.option("--picture", type=FILE, metavar="FILE", help="Write the picture to this SVG file; Markdown refers to it.")
def check_command(
    documents: Path, base: str, written: Sequence[str], listed: Path | None, processes: int, output: str,
    files: Sequence[Path], picture: Path | None, **options: Any,
) -> int:  # fmt: skip
    """Play a trace under documents, and check what must hold of waits, use and preemptions.

    Exit codes: 0 all assertions hold, 1 one does not, 2 something cannot be read.

    \b
    corral policy test --trace week.csv --documents quotas --base origin/main \\
        --assert 'wait.p95(queue=research) <= 1.1 * base' --assert 'utilisation >= 80%'
    """
    with _readable():
        _check_endings(files)
        assertions = _assertions(written, listed)
        sides = _sides(documents, base, options)
        report = _played(assertions, sides, processes)
        if picture is not None:
            from corral.sim.policy_test.picture import svg

            picture.write_text(svg(report), encoding="utf-8")
        for file in files:
            file.write_text(_FORMS[_ENDINGS[file.suffix]](report, picture, file.parent), encoding="utf-8")
        click.echo(_FORMS[output](report, picture, Path()), nl=False)
    return OK if report.held else JOB_FAILED


@contextmanager
def _readable() -> Iterator[None]:
    """Make every refusal one of usage: exit code 1 says that an assertion does not hold."""
    try:
        yield
    except CorralError as error:
        raise click.ClickException(error.message) from None
    except BrokenPipeError:  # the reader of the output is gone, which is no error of the test
        raise
    except OSError as error:
        raise click.ClickException(f"{error.filename or 'The system'}: {error.strerror}.") from None


def _check_endings(files: Sequence[Path]) -> None:
    for file in files:
        if file.suffix not in _ENDINGS:
            raise click.UsageError(f"The ending of {file} is none of {', '.join(_ENDINGS)}.")


def _assertions(written: Sequence[str], listed: Path | None) -> list[Assertion]:
    from corral.sim.policy_test.played import MOST_ASSERTIONS
    from corral.spec.assertions.parser import parse_assertion

    texts = [*written, *(() if listed is None else _lines(listed))]
    if not texts:
        raise click.UsageError("Say what must hold: --assert 'wait.p95 <= 1h', or --assertions FILE.")
    if len(texts) > MOST_ASSERTIONS:
        raise click.UsageError(f"A test has at most {MOST_ASSERTIONS} assertions, not {len(texts)}.")
    return [parse_assertion(text) for text in texts]


def _lines(file: Path) -> list[str]:
    from corral.sim.files import check_file

    check_file(file)
    if file.stat().st_size > _MOST_BYTES:
        raise InvalidInput("file-too-large", f"{file} is larger than {_MOST_BYTES >> 10} KiB.")
    lines = (line.strip() for line in file.read_text(encoding="utf-8", errors="replace").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _sides(documents: Path, base: str, options: dict[str, Any]) -> list[Side]:
    from corral.sim.policy_test.documents import base_documents, documents_of
    from corral.sim.policy_test.played import Side

    question = question_of("", {**options, "placements": False})
    sides = [Side(question, documents_of(documents))]
    if base:
        sides.append(Side(question, base_documents(base, documents)))
    return sides


def _played(assertions: Sequence[Assertion], sides: Sequence[Side], processes: int) -> Report:
    from corral.sim.policy_test.played import check_assertions, play_all, report_of

    question = sides[0].question
    trace = question.read()
    tell_of_skipped(trace)
    simulations = [side.simulation(trace) for side in sides]
    queues = list(simulations[0].site.configuration.queues)
    check_assertions(assertions, trace, queues, has_base=len(sides) > 1)
    return report_of(question.trace.name, assertions, play_all(sides, simulations, processes))


def _table(report: Report, picture: Path | None, folder: Path) -> str:
    from corral.sim.policy_test.forms import queue_cells, queue_headings, wanted

    base = ("BASE",) if report.base else ()
    rows = [
        (paint("yes", "green") if each.held else paint("no", "red"), each.assertion.text, each.shown(each.left),
         wanted(each), *([each.shown(each.base)] if base else []))
        for each in report.outcomes
    ]  # fmt: skip
    against = f", against {report.base}" if report.base else ""
    parts = [
        f"{report.trace} played under {report.documents}{against}.",
        table(("HELD", "ASSERTION", "VALUE", "WANTED", *base), rows, right=frozenset({2})),
        table(
            [each.upper() for each in queue_headings()], map(queue_cells, report.queues), right=frozenset(range(1, 7))
        ),
        "\n".join((*report.notes, report.headline)),
    ]
    return "\n\n".join(parts) + "\n"


def _markdown(report: Report, picture: Path | None, folder: Path) -> str:
    from corral.sim.policy_test.forms import markdown

    if picture is None:
        return markdown(report)
    return markdown(report, Path(os.path.relpath(picture, folder)).as_posix())


def _junit(report: Report, picture: Path | None, folder: Path) -> str:
    from corral.sim.policy_test.forms import junit

    return junit(report)


def _json(report: Report, picture: Path | None, folder: Path) -> str:
    from corral.sim.policy_test.forms import record

    return json.dumps(record(report), indent=2, ensure_ascii=False) + "\n"


_FORMS: Final[dict[str, Callable[[Report, Path | None, Path], str]]] = {
    "table": _table, "markdown": _markdown, "junit": _junit, "json": _json,
}  # fmt: skip
