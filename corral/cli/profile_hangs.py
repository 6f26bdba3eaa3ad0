"""`corral profile hung` and `ranks`: the times that a job hung, their bundles, and how fast each rank is."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from corral.cli.connection import connect
from corral.cli.output import age, output_option, say, show, table
from corral.kernel.errors import InvalidInput, NotFound
from corral.kernel.units import format_duration

_HEAD: Final = ("AGO", "SILENT", "BUNDLE", "KIB", "DONE", "WHY")


@click.command("hung")
@click.argument("job")
@click.option("--fetch", default="", metavar="BUNDLE", help="Write this bundle, or `latest`, to the present folder.")
@output_option
def hangs_command(job: str, fetch: str, output: str) -> None:
    """List the times that JOB showed no progress any more: what its ranks did, and what was done about it.

    A bundle has two stacks of each rank, the ends of the logs, what PyTorch's flight recorders wrote, and the figures of
    devices. It can hold secrets, so it is for those who may enter the job's tasks.

    \b
    corral profile hung trainer
    corral profile hung trainer --fetch latest
    """
    with connect() as client:
        found = client.job_hangs(job)
        if fetch:
            named = fetch if fetch != "latest" else next((each["bundle"] for each in found["items"]), "")
            if not named:
                raise NotFound("no-such-bundle", f"{job} has no bundle: it never hung.")
            path = Path(f"{job.rpartition('~')[2]}-{named}.tar.gz")
            try:
                with open(path, "xb") as file:
                    for piece in client.hang_bundle(job, named):
                        file.write(piece)
            except FileExistsError:
                raise InvalidInput("file-exists", f"{path} is there already.") from None
            except BaseException:
                path.unlink(missing_ok=True)
                raise
            path.chmod(0o600)
            say(f"Wrote {path}.")
            return
    if show(found, output, names=[each["bundle"] for each in found["items"]]):
        return
    if not found["items"]:
        say(f"{job} has never hung.")
        return
    rows = (
        (
            age(each["at"]),
            format_duration(max(1, int(each["silentSeconds"]))),
            each["bundle"],
            each["bytes"] // 1024,
            each["action"],
            each["why"],
        )
        for each in found["items"]
    )
    click.echo(table(_HEAD, rows, right=frozenset({0, 1, 3})))


@click.command("ranks")
@click.argument("job")
@output_option
def ranks_command(job: str, output: str) -> None:
    """Show how fast each task of JOB makes steps now, beside its peers; a SCORE of 50% is half as fast as they are.

    The program must report its steps (`corral.report`). Ranks that wait for each other in every step have one pace: their
    scores differ only where each counts its waits (`corral.waiting`).

    \b
    corral profile ranks trainer
    """
    with connect() as client:
        found = client.job_ranks(job)["items"]
    if show(found, output, names=[each["task"] for each in found]):
        return
    if not found:
        say(f"No running task of {job} reports steps: its program calls corral.report.")
        return
    rows = (
        (
            each["task"],
            each["node"],
            f"{each['step']:g}",
            _or_dash(each["stepsPerSecond"], "{:.3g}"),
            _or_dash(each["score"], "{:.0%}"),
            _or_dash(each.get("waits"), "{:.0%}"),  # a server of before does not tell it
            f"{each['behindSeconds']:.0f}s",
        )
        for each in found
    )
    heads = ("TASK", "NODE", "STEP", "STEPS/S", "SCORE", "WAITS", "BEHIND")
    click.echo(table(heads, rows, right=frozenset({2, 3, 4, 5, 6})))


def _or_dash(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)
