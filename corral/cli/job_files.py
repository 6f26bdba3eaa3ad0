"""Commands that check and convert job files locally, with the server's own parser."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corral.cli.exit_codes import OK, USAGE
from corral.cli.output import paint
from corral.cli.server_check import checked_by_server, source_option

if TYPE_CHECKING:
    from corral.spec.document_splitter import Part
    from corral.spec.job import UnifiedJob

_set = click.option("-p", "--set", "parameters", multiple=True, metavar="NAME=VALUE", help="A parameter of the file.")
_files = click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, allow_dash=True))


@click.command("validate")
@_files
@_set
@source_option
@click.option("--cluster", is_flag=True, help="The files are read as `corral up --cluster` reads them.")
@click.option(
    "-o", "--output", type=click.Choice(("table", "json")), default="table", show_default=True, help="How to print it."
)
def validate_command(files: Sequence[str], parameters: Sequence[str], source: str, cluster: bool, output: str) -> int:
    """Check FILES and report every problem with its line, column, expected value and likely correction.

    Job files and configuration documents (Cluster, Queue, VirtualCluster, Policy, Storage, Prices) are told apart by their
    kind, also within one file. Kubernetes objects beside them (a Service, a PriorityClass) are listed and skipped. No
    server is needed, so references between documents are checked only by `corral apply --dry-run`. With --from the
    server checks the jobs. Ends with 2 when a file is not valid.
    """
    if source and cluster:
        raise click.UsageError("--from is for job files, and --cluster reads none; give one of them.")
    from corral.spec.document_splitter import left_out
    from corral.spec.errors import SpecError

    found: list[dict[str, Any]] = []
    left: list[str] = []
    for file in files:
        try:
            others = _check(_text(file), _shown(file), parameters, source, cluster=cluster)
        except SpecError as error:
            found += [problem.to_document() for problem in error.problems]
            if output == "table":
                for problem in error.problems:
                    click.echo(f"{paint('✘' if sys.stdout.isatty() else 'error:', 'red')} {problem}")
        else:
            if output == "table":
                click.echo(f"{paint('✔' if sys.stdout.isatty() else 'ok:', 'green')} {file}")
                if others:
                    click.echo(f"  {left_out(others)}")
            left += (f"{file}: {each}" for each in others)
    if output == "json":
        told = {"valid": not found, "problems": found, "leftOut": left}
        click.echo(json.dumps(told, indent=2, ensure_ascii=False))
    return USAGE if found else OK


@click.command("convert")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@_set
@click.option(
    "-o", "--output", type=click.Choice(("yaml", "json")), default="yaml", show_default=True, help="How to print it."
)
@click.option("--complete", is_flag=True, help="Write every field, those at their defaults too.")
@click.option("--short", is_flag=True, help="Write the short form, which people edit and share.")
@click.option("--schema", is_flag=True, help="Print the JSON schema that editors complete job files from instead.")
def convert_command(
    file: str | None, parameters: Sequence[str], output: str, complete: bool, short: bool, schema: bool
) -> int:
    """Show the canonical form of a job FILE, its short form, or with --schema the JSON schema for editors."""
    if complete + short + schema > 1:
        raise click.UsageError("--complete, --short and --schema exclude each other; give one of them.")
    if not file and not schema:
        raise click.UsageError("Name a job file (- reads standard input), or ask for --schema.")
    from corral.spec.short_form_writer import short_form

    if schema or not file:
        document = _schema()
    elif short:
        document = short_form(_read(file, parameters))
    else:
        document = _read(file, parameters).to_document(complete=complete)
    _print(document, output)
    return OK


@click.command("crd")
@click.option(
    "-o", "--output", type=click.Choice(("yaml", "json")), default="yaml", show_default=True, help="How to print it."
)
@click.option(
    "--kind",
    type=click.Choice(("unifiedjob", "alnair", "framework")),
    default="unifiedjob",
    show_default=True,
    help="Corral's own objects, Alnair's UnifiedJobs, or FrameworkController's Frameworks.",
)
def crd_command(output: str, kind: str) -> None:
    """Print the Kubernetes CRD of UnifiedJob objects, or of another kind that is run as a job.

    \b
    corral crd | kubectl apply --server-side -f -
    """
    from corral.spec.crd import unifiedjob_crd
    from corral.spec.dialects.foreign_crds import definitions

    _print(unifiedjob_crd() if kind == "unifiedjob" else definitions()[kind], output)


def _print(document: dict[str, Any], output: str) -> None:
    if output == "json":
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    import yaml

    click.echo(yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True), nl=False)


def _text(file: str) -> bytes:
    return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()


def _shown(file: str) -> str:
    return "standard input" if file == "-" else file


def _read(file: str, parameters: Sequence[str]) -> UnifiedJob:
    return _job(_text(file), _shown(file), parameters)


def _job(text: bytes, shown: str, parameters: Sequence[str]) -> UnifiedJob:
    from corral.spec.job_reader import load_job

    return load_job(text, parameters=_pairs(parameters), filename=shown)


def _pairs(parameters: Sequence[str]) -> dict[str, str]:
    from corral.cli.submit import pair

    return dict(pair(each) for each in parameters)


def _check_job(text: bytes, shown: str, parameters: Sequence[str], source: str) -> None:
    """Check a job here, or by the server when it came from another job. Raises SpecError with every problem."""
    if source:
        checked_by_server(text, shown, _pairs(parameters), source)
    else:
        _job(text, shown, parameters)


def _check(text: bytes, shown: str, parameters: Sequence[str], source: str, *, cluster: bool) -> tuple[str, ...]:
    """Check a file by its kind, and return the documents in it that belong to other programs.

    Raises SpecError with every problem.
    """
    from corral.spec.configuration_file import is_configuration, load_document, load_site

    if cluster:
        load_site(text, filename=shown)
    elif parts := _parts(text, shown):
        return _check_parts(parts, shown, parameters, source)
    elif is_configuration(text):
        load_document(text, filename=shown)
    else:
        _check_job(text, shown, parameters, source)
    return ()


def _parts(text: bytes, shown: str) -> list[Part]:
    """Return the documents of a file that has several.

    Raises SpecError when one is malformed, or none is Corral's.
    """
    from corral.spec.document_splitter import Sort, parts_of, the_job
    from corral.spec.job_reader import TEXT_UNDER

    parts = parts_of(text, shown, TEXT_UNDER)
    if parts and all(part.sort is Sort.OTHER for part in parts):
        the_job(text, shown, TEXT_UNDER)
    return parts


def _check_parts(parts: list[Part], shown: str, parameters: Sequence[str], source: str) -> tuple[str, ...]:
    from corral.spec.configuration_file import load_document
    from corral.spec.document_splitter import Sort, joined
    from corral.spec.errors import Problem, SpecError

    problems: list[Problem] = []
    for part in parts:
        if part.sort is Sort.JOB:
            try:
                _check_job(part.text.encode(), shown, parameters, source)
            except SpecError as error:
                problems += error.problems
    if configuration := joined([part for part in parts if part.sort is Sort.CONFIGURATION]):
        try:
            load_document(configuration, filename=shown)
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(problems)
    return tuple(str(part) for part in parts if part.sort is Sort.OTHER)


def _schema() -> dict[str, Any]:
    from corral.spec.schema import short_schema

    return short_schema()
