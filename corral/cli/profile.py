"""`corral profile`: see what a running job does, without having prepared anything; and the profiles kept here."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import click

from corral.cli import profile_folder
from corral.cli.connection import connect
from corral.cli.logs import chosen_task, split_task
from corral.cli.output import output_option, say, show, table
from corral.cli.profile_hangs import hangs_command, ranks_command
from corral.cli.profile_kinds import FLAMES, MOST_BYTES, facts_of, files_of, read
from corral.cli.profile_session import Answered, profile_task
from corral.cli.profile_text import comparison_text, text_of
from corral.kernel.errors import InvalidInput
from corral.kernel.units import counted

if TYPE_CHECKING:
    from corral.client.sync import Client

_TASKS: Final = 64
"""Tasks of a job that are profiled together."""
_PROCESSES: Final = 8
_RATE: Final = 50
"""Samples in a second."""
_SECONDS: Final = re.compile(r"([0-9]{1,3})s?")
_MOST_SECONDS: Final = {"python": 60, "torch": 10}
_START_SECONDS: Final = 11
"""PyTorch asks every five seconds whether a trace is wanted, and all ranks begin at the same moment."""


class _Group(click.Group):
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
    """See what a running job does now: `corral profile JOB` takes a profile, which is kept on this computer.

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
    type=click.Choice(("python", "stacks", "torch")),
    default="python",
    show_default=True,
    help="What to look at.",
)
@output_option
def take_command(job: str, task: str, every: bool, duration: str, what: str, output: str) -> int:
    """Take a profile of the Python processes of a running JOB; nothing needs to be prepared, and nothing is stopped.

    `--what python` samples the stacks and shows the functions in which the time goes, with a flame graph in a file.
    `--what torch` has PyTorch trace itself (at most 10s) and tells computing, communication, copies and waits for data,
    with advice; the job file must say `profile: true`. `--what stacks` prints where each rank stands now, which says
    most quickly why a job hangs; it looks at all tasks unless one is named. `take` can be left out.

    \b
    corral profile trainer --task worker-0 --duration 5s
    corral profile trainer --what stacks
    """
    if task and every:
        raise click.UsageError("Name one task with --task, or ask for --all.")
    seconds = 0 if what == "stacks" else _seconds(duration, _MOST_SECONDS[what])
    with connect() as client:
        tasks = _tasks(client, job, task, every=every or what == "stacks")
        request = {
            "what": what,
            "seconds": seconds,
            "rate": _RATE,
            "processes": _PROCESSES,
            "bytes": MOST_BYTES[what],
            "start": time.time() + _START_SECONDS,
        }
        with ThreadPoolExecutor(len(tasks)) as pool:
            answers = list(pool.map(lambda each: profile_task(client, job, each, request), tasks))
    return _tell(job, what, seconds, answers, output)


def _seconds(text: str, most: int) -> int:
    match = _SECONDS.fullmatch(text)
    if match is None or not 1 <= int(match[1]) <= most:
        raise click.UsageError(f"--duration is 1s to {most}s, not {text[:40]!r}.")
    return int(match[1])


def _tasks(client: Client, job: str, task: str, *, every: bool) -> list[tuple[str, int]]:
    if task:
        return [split_task(task)]
    if not every:
        return [chosen_task(client, job, "")]
    page = client.tasks(job, state="running", limit=_TASKS)
    if page["next"] is not None:
        say(f"These are the first {_TASKS} running tasks; name others with --task.")
    if not page["items"]:
        raise InvalidInput("no-running-task", f"{job} has no running task to look at.")
    return [(each["role"], each["index"]) for each in page["items"]]


def _tell(job: str, what: str, seconds: int, answers: Sequence[Answered], output: str) -> int:
    """Print and keep what came; 1 if nothing did."""
    taken = [each for answer in answers for each in answer.taken]
    found = [read(each, what) for each in taken]
    good = [(each, result) for each, (result, _) in zip(taken, found, strict=True) if result is not None]
    problems = [(each.rank, problem) for each, (_, problem) in zip(taken, found, strict=True) if problem]
    for rank, problem in problems:
        say(f"{rank}: {problem}")
    if left_out := sum(answer.left_out for answer in answers):
        say(f"{counted(left_out, 'rank')} beyond {_PROCESSES} of one task were left out.")
    facts: dict[str, Any] = {
        "job": job, "what": what, "seconds": seconds, "ranks": [each.rank for each, _ in good],
        "problems": [{"rank": rank, "problem": problem} for rank, problem in problems],
    }  # fmt: skip
    if not good:
        show(facts, output)
        return 1
    facts |= facts_of(good, what)
    facts = profile_folder.keep(job, facts, files_of(good, what, job))
    if not show(facts, output, names=[facts["name"]]):
        _print(facts)
    return 0


def _print(facts: dict[str, Any]) -> None:
    click.echo(text_of(facts))
    if FLAMES in facts["files"]:
        say(f"Flame graph: {profile_folder.path_of(facts['name'], FLAMES)}")
    if facts["what"] == "torch":
        say(f"Traces for Perfetto (ui.perfetto.dev): {profile_folder.path_of(facts['name'], '*.trace.json.gz')}")
    say(f"Kept as {facts['name']}.")


@profile_command.command("list")
@output_option
def list_command(output: str) -> None:
    """List the profiles that are kept on this computer, newest first."""
    found = profile_folder.kept()
    if show(found, output, names=[each["name"] for each in found]):
        return
    rows = (
        (each["name"], each["job"], each["what"], len(each["ranks"]), profile_folder.size_of(each["name"]) // 1024)
        for each in found
    )
    click.echo(table(("PROFILE", "JOB", "WHAT", "PROCESSES", "KIB"), rows, right=frozenset({3, 4})))


@profile_command.command("show")
@click.argument("profile")
@click.option("--compare", default="", metavar="OTHER", help="Beside this profile of the same kind, taken later.")
@output_option
def show_command(profile: str, compare: str, output: str) -> None:
    """Show a kept PROFILE again, or compare it with another one."""
    facts = profile_folder.facts_of(profile)
    if compare:
        other = profile_folder.facts_of(compare)
        if facts["what"] != other["what"] or facts["what"] == "stacks":
            raise InvalidInput(
                "not-comparable", "Two profiles of functions, or two traces of PyTorch, can be compared."
            )
        if not show([facts, other], output, names=[profile, compare]):
            click.echo(comparison_text(facts, other))
        return
    if not show(facts, output, names=[profile]):
        _print(facts)


@profile_command.command("rm")
@click.argument("profiles", nargs=-1, required=True, metavar="PROFILE...")
def rm_command(profiles: tuple[str, ...]) -> None:
    """Remove kept profiles."""
    for each in profiles:
        profile_folder.forget(each)
        say(f"Removed {each}.")


profile_command.add_command(hangs_command)
profile_command.add_command(ranks_command)
