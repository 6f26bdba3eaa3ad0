"""`corral outputs`: list the outputs of a job and their folders, and fetch files."""

from __future__ import annotations

import click

from corral.cli.connection import connect
from corral.cli.output import output_option, show, table
from corral.cli.paging import items
from corral.cli.storages import show_files, write_file


@click.command("outputs")
@click.argument("job")
@click.argument("number", type=click.IntRange(0, 10_000), required=False)
@click.argument("path", default="")
@click.option("--get", "fetch", is_flag=True, help="Fetch the file at PATH.")
@click.option("--to", default="", help="Where to write it (- is standard output); default: its name.")
@click.option("--force", is_flag=True, help="Write over a file that is there already.")
@output_option
def outputs_command(job: str, number: int | None, path: str, fetch: bool, to: str, force: bool, output: str) -> None:
    """List where a job keeps results, or a folder of one of these, or fetch a file from it.

    \b
    corral outputs digits
    corral outputs digits 0 checkpoints
    corral outputs digits 0 checkpoints/last.pt --get
    """
    if fetch and (number is None or not path):
        raise click.UsageError("Name the output's number and the file's path: corral outputs JOB 0 PATH --get.")
    with connect() as client:
        if number is None:
            found = client.job_outputs(job)["items"]
            if show(found, output, names=[str(each["index"]) for each in found]):
                return
            rows = [(each["index"], each["path"], each["uri"], each["storage"], each["message"]) for each in found]
            click.echo(table(("NUMBER", "PATH", "KEPT AT", "STORAGE", ""), rows))
        elif fetch:
            write_file(lambda: client.output_file(job, number, path), path, to, force=force)
        else:
            files = items(lambda **page: client.output_files(job, number, path, **page))
            show_files(files, output)
