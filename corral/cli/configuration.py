"""Commands for configuration documents: apply, diff, history, rollback and delete."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

import click

from corral.cli.connection import connect
from corral.cli.document_files import configuration_of, job_alone, jobs_of, parts_in, tell_left_out
from corral.cli.job_diff import diff_of_jobs
from corral.cli.output import age, fields, output_option, paint, say, show, table
from corral.cli.paging import items
from corral.kernel.errors import InvalidInput
from corral.kernel.kinds import kind_of

if TYPE_CHECKING:
    from corral.client.schema import Applied, AppliedDocument, DocumentDiff
    from corral.client.sync import Client

_HOW = (
    click.option("--dry-run", is_flag=True, help="Change nothing; show what would change, or what refuses it."),
    click.option("--preempt", is_flag=True, help="Do it even if running jobs lose devices that they are guaranteed."),
    click.option("-m", "--note", default="", help="Why, for the history."),
    output_option,
)
_file = click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
_MARKS = {"created": ("+", "green"), "changed": ("~", "yellow"), "deleted": ("-", "red"), "unchanged": ("=", "")}
Command = TypeVar("Command", bound=Callable[..., Any])


class How(TypedDict):
    """The options shared by all commands that change documents."""

    dry_run: bool
    preempt: bool
    note: str


def _changes(command: Command) -> Command:
    """Add the options of a change to a command."""
    for option in reversed(_HOW):
        command = option(command)
    return command


@click.command("apply")
@_file
@_changes
def apply_command(file: str, output: str, **how: Unpack[How]) -> int:
    """Apply every document of FILE (- reads standard input), or none.

    They are Cluster, Queue, VirtualCluster, Policy, Storage and Prices documents. Jobs in the file (such as a Framework)
    are submitted afterwards, as by `corral submit`. Kubernetes objects beside them are listed and skipped. Only a document
    that differs gets a new revision. A change that would take guaranteed devices from running jobs is refused with the
    numbers (exit code 4), unless --preempt is given.

    \b
    corral diff queues.yaml && corral apply queues.yaml -m "research grows"
    """
    text = _text(file)
    parts = parts_in(text, file) or job_alone(text, file)
    jobs = jobs_of(parts) if parts else []
    settings = configuration_of(parts) if parts else text
    if parts and not jobs and not settings:
        tell_left_out(parts)
        raise InvalidInput("nothing-to-apply", f"No document of {file} is Corral's, so nothing was applied.")
    code = 0
    with connect() as client, _naming(file):
        if settings:
            _show_applied(client.apply(settings, **how), output)
        if jobs:
            code = _submit_too(client, jobs, file, output, dry_run=how["dry_run"])
    if parts:
        tell_left_out(parts)
    return code


def _try_too(jobs: list[bytes], file: str) -> None:
    """Check the jobs locally: the server does not yet have the documents that are applied before them."""
    from corral.spec.job_reader import load_job

    for text in jobs:
        job = load_job(text, filename="standard input" if file == "-" else file)
        click.echo(f"{paint('+', 'green')} job/{job.name} would be submitted")


def _submit_too(client: Client, jobs: list[bytes], file: str, output: str, *, dry_run: bool) -> int:
    """Submit the jobs of an applied file."""
    from corral.cli.submit import submit_jobs

    if dry_run:
        _try_too(jobs, file)
        return 0
    folder = Path.cwd() if file == "-" else Path(file).resolve().parent
    sent = dict.fromkeys(("wait_for_capacity", "no_image", "follow"), False)
    return submit_jobs(
        client, jobs, folder, {}, {**sent, "dry_run": False, "source": "", "idempotency_key": "", "output": output}
    )


@click.command("diff")
@click.argument("target", metavar="FILE|KIND/NAME|JOB")
@click.argument("other", metavar="[JOB]", required=False, default="")
@click.option("--from", "before", type=click.IntRange(0), default=None, help="The earlier revision of KIND/NAME.")
@click.option("--to", "after", type=click.IntRange(1), default=None, help="The later revision of KIND/NAME.")
@click.option("--exit-code", is_flag=True, help="End with 1 when there is a difference.")
@output_option
def diff_command(target: str, other: str, before: int | None, after: int | None, exit_code: bool, output: str) -> int:
    """Show the changes that applying FILE would make, or with KIND/NAME those of its last revision.

    With two jobs, show how the document of the second differs from that of the first.

    \b
    corral diff queues.yaml
    corral diff queue/research --from 1 --to 3
    corral diff train-1 train-2
    """
    if other:
        if before is not None or after is not None:
            raise click.UsageError("--from and --to compare revisions of KIND/NAME, not two jobs.")
        with connect() as client:
            diff = diff_of_jobs(client, target, other)
        if not show({"before": target, "after": other, "diff": diff}, output, names=[target, other] if diff else []):
            click.echo(coloured_diff(diff), nl=False)
            if not diff:
                say("There is no difference.")
        return 1 if exit_code and diff else 0
    is_file = target == "-" or Path(target).is_file()
    if is_file and (before is not None or after is not None):
        raise click.UsageError("--from and --to compare revisions of KIND/NAME, not a file.")
    with connect() as client, _naming(target):
        if is_file:
            text = _text(target)
            parts = parts_in(text, target)
            applied = client.diff((configuration_of(parts) if parts else b"") or text)
            found: Applied | DocumentDiff = applied
            compared: Sequence[AppliedDocument | DocumentDiff] = applied["documents"]
        else:
            kind, name = named(target)
            found = one = client.configuration_diff(kind, name, before=before, after=after)
            compared = [one]
    names = [f"{each['kind']}/{each['name']}" for each in compared if each["diff"]]
    if not show(found, output, names=names):
        click.echo(coloured_diff("".join(each["diff"] for each in compared)), nl=False)
        if not names:
            say("There is no difference.")
    return 1 if exit_code and names else 0


@click.command("history")
@click.argument("document", metavar="KIND/NAME")
@click.option("-n", "--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many at most.")
@output_option
def history_command(document: str, limit: int, output: str) -> None:
    """List the revisions of a document, newest first: author, time and note.

    \b
    corral history queue/research
    """
    kind, name = named(document)
    with connect() as client:
        page = client.configuration_history(kind, name, limit=limit)
    found = page["items"]
    if show(found, output, names=[str(each["revision"]) for each in found]):
        return
    rows = [
        (each["revision"], age(each["at"]), each["actor"], "deleted" if each["deleted"] else "", each["note"])
        for each in found
    ]
    click.echo(table(("REVISION", "AGE", "BY", "", "NOTE"), rows, right=frozenset({0, 1})))
    if page["next"]:
        say(f"There are more; corral history {document} -n {min(limit * 4, 1000)} shows them.")


@click.command("rollback")
@click.argument("document", metavar="KIND/NAME")
@click.argument("revision", type=click.IntRange(1))
@_changes
def rollback_command(document: str, revision: int, output: str, **how: Unpack[How]) -> None:
    """Make an earlier REVISION of a document the current one, as a new revision.

    \b
    corral rollback queue/research 3
    """
    kind, name = named(document)
    with connect() as client:
        applied = client.roll_back(kind, name, revision, **how)
    _show_applied(applied, output)


@click.command("delete")
@click.argument("documents", nargs=-1, required=True, metavar="KIND/NAME...")
@_changes
def delete_command(documents: Sequence[str], output: str, **how: Unpack[How]) -> None:
    """Delete configuration documents; their revisions are kept, and rollback restores one. (Jobs: corral rm.)"""
    wanted = [named(document) for document in documents]
    done: list[AppliedDocument] = []
    with connect() as client:
        for kind, name in wanted:
            done += client.delete_configuration(kind, name, **how)["documents"]
    _show_applied({"documents": done, "dryRun": how["dry_run"], "findings": []}, output)


def names_configuration(word: str) -> bool:
    """Return whether a word is a kind or KIND/NAME, rather than a job."""
    return "/" in word or bool(kind_of(word))


def named(document: str) -> tuple[str, str]:
    """Split KIND/NAME into kind and name; the server checks that the kind exists.

    Raises UsageError for any other text.
    """
    kind, slash, name = document.partition("/")
    if not slash or not kind or not name or "/" in name:
        hint = f"; corral get {document} lists those there are" if kind_of(document) else ""
        raise click.UsageError(f"{document[:100]!r} is not KIND/NAME, such as queue/research{hint}.")
    return kind, name


def list_documents(kind: str, output: str, *, deleted: bool = False) -> None:
    """Print the documents of a kind, or those that were deleted."""
    with connect() as client:
        found = items(client.documents, kind=kind, deleted=deleted)
    if show(found, output, names=[f"{each['kind']}/{each['name']}" for each in found]):
        return
    if not found and deleted:
        say(f"No {kind_of(kind)} document was deleted.")
        return
    if not found:
        say(f"No {kind_of(kind)} document is stored. Write one and apply it: corral apply FILE")
        return
    rows = [
        (f"{each['kind']}/{each['name']}", each["revision"], age(each["at"]), each["actor"], each["note"])
        for each in found
    ]
    click.echo(table(("DOCUMENT", "REVISION", "AGE", "BY", "NOTE"), rows, right=frozenset({1, 2})))


def show_document(document: str, revision: int | None, output: str) -> None:
    """Print one document; the YAML or JSON output can be edited and applied again."""
    kind, name = named(document)
    with connect() as client:
        found = client.configuration(kind, name, revision=revision)
        is_queue = found["kind"] == "Queue" and not found["deleted"] and revision is None and output == "table"
        ledger = client.ledger(found["name"]) if is_queue else None
    whole = f"{found['kind']}/{found['name']}"
    if output == "yaml":
        click.echo(found["text"], nl=False)
    elif not show(found["document"], output, names=[whole]):
        head = {
            "Document": whole,
            "Revision": f"{found['revision']}{' (deleted)' if found['deleted'] else ''}",
            "By": found["actor"],
            "Age": age(found["at"]),
            "Note": found["note"],
        }
        click.echo(f"{fields(head)}\n\n{found['text']}", nl=False)
        if ledger is not None and (ledger["lent"] or ledger["borrowed"]):
            from corral.cli.suspend_and_drain import ledger_text

            click.echo("\n" + ledger_text(ledger))


def coloured_diff(diff: str) -> str:
    """Return a unified diff in the usual colours, if the output is coloured."""
    return "".join(f"{_coloured_line(line)}\n" for line in diff.splitlines())


def _coloured_line(line: str) -> str:
    if line.startswith(("---", "+++")):
        return paint(line, bold=True)
    if line.startswith("@@"):
        return paint(line, "cyan")
    return paint(line, "green" if line[:1] == "+" else "red") if line[:1] in ("+", "-") else line


def _show_applied(applied: Applied, output: str) -> None:
    """Print the change of each document, and the guarantees that it breaks."""
    done = applied["documents"]
    if show(applied, output, names=[f"{each['kind']}/{each['name']}" for each in done]):
        return
    for each in done:
        mark, colour = _MARKS[each["action"]]
        what = f"would be {each['action']}" if applied["dryRun"] and each["action"] != "unchanged" else each["action"]
        number = "" if applied["dryRun"] or not each["revision"] else f" (revision {each['revision']})"
        click.echo(f"{paint(mark, colour)} {each['kind']}/{each['name']} {what}{number}")
        if applied["dryRun"] and each["diff"]:
            click.echo(coloured_diff(each["diff"]), nl=False)
    for finding in applied["findings"]:
        say(f"{paint('Broken:', 'yellow')} {finding['message']}.")


@contextlib.contextmanager
def _naming(file: str) -> Iterator[None]:
    """Replace the server's name of the file by the local one in its error messages."""
    try:
        yield
    except InvalidInput as error:
        error.message = re.sub(
            r"^the (?:job )?file(?=:\d)", "standard input" if file == "-" else file, error.message, flags=re.M
        )
        raise


def _text(file: str) -> bytes:
    return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
