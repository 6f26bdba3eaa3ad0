"""`corral profile`: see what a running job does, without having prepared anything; and the profiles that are kept."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from corral.cli.command_group import CommandGroup
from corral.cli.connection import connect
from corral.cli.logs import chosen_task, split_task
from corral.cli.output import age, output_option, say, show, table
from corral.cli.profile_hangs import hangs_command, ranks_command
from corral.cli.profile_text import comparison_text, text_of
from corral.kernel.units import format_memory

if TYPE_CHECKING:
    from corral.client.schema import ProfileView
    from corral.client.sync import Client

_SECONDS: Final = re.compile(r"([0-9]{1,3})s?")
_MOST_SECONDS: Final = {"python": 60, "torch": 10, "jax": 10, "tensorflow": 10, "memory": 30, "system": 60}
_LOOK_SECONDS: Final = 0.5
"""Seconds between two looks whether a profile is done."""


class _Group(CommandGroup):
    """A group in which a first word that names no command is the job of `take`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command for the words."""
        return super().resolve_command(ctx, args if args and args[0] in self.commands else ["take", *args])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Leave options before the job to `take`."""
        first = args[0] if args else ""
        return super().parse_args(
            ctx, ["take", *args] if first.startswith("-") and first not in ("-h", "--help") else args
        )


@click.group("profile", cls=_Group)
def profile_command() -> None:
    """See what a running job does now: `corral profile JOB` takes a profile, which the server keeps.

    \b
    corral profile trainer --what stacks
    corral profile trainer --all --duration 5s
    corral profile list
    """


@profile_command.command("take")
@click.argument("job")
@click.option("--task", default="", metavar="TASK", help="This task, such as worker-0; default: the only one.")
@click.option("--all", "every", is_flag=True, help="All running tasks of the job, at the same time.")
@click.option("--duration", default="2s", show_default=True, metavar="TIME", help="For how long to sample: 1s to 60s.")
@click.option(
    "--what",
    type=click.Choice(("python", "stacks", "torch", "jax", "tensorflow", "memory", "system")),
    default="python",
    show_default=True,
    help="What to look at.",
)
@output_option
def take_command(job: str, task: str, every: bool, duration: str, what: str, output: str) -> int:
    """Take a profile of the Python processes of a running JOB; nothing needs to be prepared, and nothing is stopped.

    `--what python` samples the stacks and shows the functions in which the time goes, with a flame graph in a file.
    `--what torch` has PyTorch trace itself (at most 10s) and tells computing, communication, copies and waits for data,
    with advice; the job file must say `profile: true`. `--what jax` and `--what tensorflow` ask the profiler servers that
    the program opened (at most 10s). `--what stacks` prints where each rank stands now, which says most quickly why a job
    hangs; it looks at all tasks unless one is named. `--what memory` (at most 30s) shows who holds the memory, and beneath
    which functions it grew. `--what system` shows what the task gets of its machine, with advice. `take` can be left out.

    \b
    corral profile trainer --task worker-0 --duration 5s
    corral profile trainer --what stacks
    """
    if task and every:
        raise click.UsageError("Name one task with --task, or ask for --all.")
    seconds = 0 if what == "stacks" else _seconds(duration, _MOST_SECONDS[what])
    with connect() as client:
        tasks = _tasks(client, job, task, every=every or what == "stacks")
        view = _finished(client, client.take_profile(job, what=what, seconds=seconds, tasks=tasks))
        for each in view["problems"]:
            say(f"{each['rank']}: {each['problem']}")
        if view["state"] == "failed":
            if not view["problems"]:
                say(view["problem"])
            show(view, output, names=[view["id"]])
            return 1
        _tell(client, view, output)
        return 0


def _seconds(text: str, most: int) -> int:
    match = _SECONDS.fullmatch(text)
    if match is None or not 1 <= int(match[1]) <= most:
        raise click.UsageError(f"--duration is 1s to {most}s, not {text[:40]!r}.")
    return int(match[1])


def _tasks(client: Client, job: str, task: str, *, every: bool) -> list[str]:
    """The named task or the only one; none is all tasks."""
    if every:
        return []
    role, index = split_task(task) if task else chosen_task(client, job, "")
    return [f"{role}-{index}"]


def _finished(client: Client, view: ProfileView) -> ProfileView:
    while view["state"] not in ("done", "failed"):
        time.sleep(_LOOK_SECONDS)
        view = client.profile(view["id"])
    return view


def _tell(client: Client, view: ProfileView, output: str) -> None:
    """Print what a profile shows, and where its files are."""
    report = client.profile_report(view["id"])
    if show({**view, **report}, output, names=[view["id"]]):
        return
    click.echo(text_of(report))
    if report["frames"]:
        say(f"Flame graph: corral profile download {view['id']}")
    if view["what"] in ("torch", "jax", "tensorflow"):
        say(f"Traces for Perfetto (ui.perfetto.dev): corral profile download {view['id']}")
    say(f"Kept as {view['id']}.")


@profile_command.command("list")
@click.argument("job", default="")
@output_option
def list_command(job: str, output: str) -> None:
    """List the profiles that are kept of JOB, or of all your jobs, newest first."""
    with connect() as client:
        found = client.profiles(job)
    items = found["items"]
    if show(found, output, names=[each["id"] for each in items]):
        return
    rows = [
        (
            each["id"],
            each["jobName"],
            each["what"],
            each["state"],
            each["ranks"],
            each["size"] // 1024,
            age(each["takenAt"]),
        )
        for each in items
    ]
    click.echo(table(("PROFILE", "JOB", "WHAT", "STATE", "RANKS", "KIB", "TAKEN"), rows, right=frozenset({4, 5})))
    if found["mostBytes"]:
        say(f"Kept profiles take {format_memory(found['bytes'])} of {format_memory(found['mostBytes'])}.")


@profile_command.command("show")
@click.argument("profile")
@click.option("--compare", default="", metavar="OTHER", help="Beside this profile of the same kind, taken later.")
@output_option
def show_command(profile: str, compare: str, output: str) -> None:
    """Show a kept PROFILE again, or compare it with another one."""
    with connect() as client:
        if not compare:
            _tell(client, client.profile(profile), output)
            return
        found = client.compare_profiles(profile, compare)
    if not show(found, output, names=[profile, compare]):
        click.echo(comparison_text(found))


@profile_command.command("download")
@click.argument("profile")
@click.option(
    "--to", "folder", default=".", metavar="FOLDER", help="The folder of the files; default: the current one."
)
def download_command(profile: str, folder: str) -> None:
    """Download the files of a PROFILE: its flame graph as SVG, folded stacks, or PyTorch's traces for Perfetto."""
    with connect() as client:
        view = client.profile(profile)
        if view["state"] != "done":
            raise click.ClickException(f"The profile has no files: it is {view['state']}.")
        for each in view["files"]:
            _fetch(client, view["id"], each["name"], Path(folder))


def _fetch(client: Client, profile: str, name: str, folder: Path) -> None:
    """Write one file, which only the user may read: it has names and paths of a program."""
    target = folder / f"{profile}-{os.path.basename(name)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.writelines(client.profile_file(profile, name))
    except OSError as error:
        raise click.ClickException(f"{target} cannot be written: {error.strerror}.") from None
    click.echo(target)


@profile_command.command("rm")
@click.argument("profiles", nargs=-1, required=True, metavar="PROFILE...")
def rm_command(profiles: tuple[str, ...]) -> None:
    """Remove kept profiles."""
    with connect() as client:
        for each in profiles:
            client.remove_profile(each)
            say(f"Removed {each}.")


profile_command.add_command(hangs_command)
profile_command.add_command(ranks_command)
