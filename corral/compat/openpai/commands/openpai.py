"""`corral openpai`: check how an OpenPAI job file will run, and import an OpenPAI cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from corral.cli.command_group import CommandGroup
from corral.cli.exit_codes import OK, USAGE
from corral.cli.output import fields, output_option, paint, show, table
from corral.cli.server_check import checked_by_server, source_option

if TYPE_CHECKING:
    from corral.compat.openpai.language.report import Report

_MARKS: Final = {"same": ("✔", "green"), "differs": ("≠", "yellow"), "ignored": ("·", "bright_black")}
_MORE: Final = {"import": ("corral.compat.openpai.commands.cluster_import", "import_command")}
"""Commands in modules of their own, which checking a file does not import."""


class _Group(CommandGroup):
    """A command group that imports a subcommand only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all subcommands."""
        return sorted({*super().list_commands(ctx), *_MORE})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a subcommand."""
        if cmd_name not in _MORE:
            return super().get_command(ctx, cmd_name)
        from importlib import import_module

        module, name = _MORE[cmd_name]
        command: click.Command = getattr(import_module(module), name)
        return command


@click.group("openpai", cls=_Group)
def openpai_command() -> None:
    """Move jobs and clusters over from OpenPAI."""


@openpai_command.command("check")
@click.argument("job", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--dry-run", is_flag=True, help="Ask the server too, whether it would take the job and start it now.")
@click.option("--no-image", is_flag=True, help="With --dry-run: without the images that it names, as plain processes.")
@source_option
@output_option
def check_command(job: str, dry_run: bool, no_image: bool, source: str, output: str) -> int:
    """Report the features that an OpenPAI JOB file uses, and how it will run here (- reads standard input).

    Files of protocol 2 (YAML) and 1 (JSON) are told apart. No server is needed, unless --from names a job that
    the file came from. Ends with 2 when the file is not valid.

    \b
    corral openpai check job.yaml
    corral openpai check job.yaml -o json
    """
    from corral.spec.errors import SpecError

    text = sys.stdin.buffer.read() if job == "-" else Path(job).read_bytes()
    try:
        found = _report(text, "standard input" if job == "-" else job, source)
    except SpecError as error:
        problems = [problem.to_document() for problem in error.problems]
        if not show({"valid": False, "problems": problems}, output):
            for problem in error.problems:
                click.echo(f"{paint('✘' if sys.stdout.isatty() else 'error:', 'red')} {problem}")
        return USAGE
    trial = _trial(text, source, no_image=no_image) if dry_run else None
    data = {"valid": True, **found.to_document(), **({"trial": trial} if trial else {})}
    if not show(data, output, names=[found.job]):
        _draw(found)
        if trial is not None:
            click.echo(f"\n{_trial_words(trial)}")
    return OK


def _report(text: bytes, shown: str, source: str) -> Report:
    """Return the report on an OpenPAI job file.

    Raises SpecError for any other file, or one that is not valid.
    """
    from corral.compat.openpai.language.report import report
    from corral.spec.job import UnifiedJob
    from corral.spec.job_reader import load_job

    if source:
        return report(UnifiedJob.from_document(checked_by_server(text, shown, {}, source), filename=shown))
    return report(load_job(text, filename=shown))


def _trial(text: bytes, source: str, *, no_image: bool) -> dict[str, Any]:
    from corral.cli.connection import connect

    with connect() as client:
        return dict(client.submit(text, dry_run=True, no_image=no_image, source=source))


def _trial_words(trial: dict[str, Any]) -> str:
    starts = {True: "would start now", False: "would wait", None: "would be accepted; nobody could say when it starts"}
    reasons = trial.get("reasons")
    return f"The job {starts[trial['wouldStart']]}" + (f": {reasons['binding']['message']}" if reasons else ".")


def _draw(found: Report) -> None:
    called = found.job if found.job == found.name else f"{found.job} (from {found.name})"
    click.echo(
        fields(
            {
                "Protocol": found.protocol,
                "Name": called,
                "Queue": found.queue,
                "Priority": found.priority,
                "Retries": found.retries,
            }
        )
    )
    rows = [
        (
            role.name,
            role.tasks,
            role.cpu,
            role.memory,
            f"{role.devices} {role.model}".strip(),
            " ".join(f"{name}:{count}" for name, count in role.ports.items()),
            role.image,
        )
        for role in found.roles
    ]
    click.echo()
    click.echo(table(("ROLE", "TASKS", "CPU", "MEMORY", "DEVICES", "PORTS", "IMAGE"), rows, right=frozenset({1, 2, 3})))
    click.echo()
    for role in found.roles:
        click.echo(f"{role.name}: the job {role.completion}.")
    if found.uses:
        click.echo()
        click.echo(table(("USES", "", "HERE"), [(use.field, _mark(use.state), use.here) for use in found.uses]))


def _mark(state: str) -> str:
    mark, colour = _MARKS[state]
    return paint(mark, colour) if sys.stdout.isatty() else state
