"""`corral profile`: see what a running job does, without having prepared anything; and the profiles kept here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import click

from corral.cli import profile_folder
from corral.cli.connection import connect
from corral.cli.logs import chosen_task, split_task
from corral.cli.output import output_option, say, show, table
from corral.cli.profile_session import Answered, Taken, profile_task
from corral.cli.profile_text import functions_text, places_text
from corral.kernel.errors import CorralError, InvalidInput
from corral.kernel.units import counted
from corral.profiles.flame_graph import flame_graph
from corral.profiles.folded import Sampled, functions, read_folded, tree
from corral.profiles.stacks import Place, places, read_stacks

if TYPE_CHECKING:
    from corral.client.sync import Client

_TASKS: Final = 64
"""Tasks of a job that are profiled together."""
_PROCESSES: Final = 8
_RATE: Final = 50
"""Samples in a second."""
_MOST_TEXT: Final = 4 * 1024**2
"""Bytes of one process's profile."""
_SECONDS: Final = re.compile(r"([0-9]{1,3})s?")
_MOST_SECONDS: Final = 60


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
    "--what", type=click.Choice(("python", "stacks")), default="python", show_default=True, help="What to look at."
)
@output_option
def take_command(job: str, task: str, every: bool, duration: str, what: str, output: str) -> int:
    """Take a profile of the Python processes of a running JOB; nothing needs to be prepared, and nothing is stopped.

    `--what python` samples the stacks and shows the functions in which the time goes, with a flame graph in a file.
    `--what stacks` prints where each rank stands now, which says most quickly why a job hangs; it looks at all tasks
    unless one is named. `take` can be left out.

    \b
    corral profile trainer --task worker-0 --duration 5s
    corral profile trainer --what stacks
    """
    if task and every:
        raise click.UsageError("Name one task with --task, or ask for --all.")
    seconds = 0 if what == "stacks" else _seconds(duration)
    with connect() as client:
        tasks = _tasks(client, job, task, every=every or what == "stacks")
        request = {
            "what": what, "seconds": seconds, "rate": _RATE, "processes": _PROCESSES, "bytes": _MOST_TEXT
        }  # fmt: skip
        with ThreadPoolExecutor(len(tasks)) as pool:
            answers = list(pool.map(lambda each: profile_task(client, job, each, request), tasks))
    return _tell(job, what, seconds, answers, output)


def _seconds(text: str) -> int:
    match = _SECONDS.fullmatch(text)
    if match is None or not 1 <= int(match[1]) <= _MOST_SECONDS:
        raise click.UsageError(f"--duration is 1s to {_MOST_SECONDS}s, not {text[:40]!r}.")
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
    read = [_read(each, what) for each in taken]
    good = [(each, found) for each, (found, _) in zip(taken, read, strict=True) if found is not None]
    problems = [(each.rank, problem) for each, (_, problem) in zip(taken, read, strict=True) if problem]
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
    facts |= _places(good) if what == "stacks" else _functions(good)
    files = {f"{each.task}-{each.process}.txt": each.text for each, _ in good}
    if what == "python":
        files["flame-graph.svg"] = _flames(job, good)
    facts = profile_folder.keep(job, facts, files)
    if not show(facts, output, names=[facts["name"]]):
        _print(facts)
    return 0


def _read(taken: Taken, what: str) -> tuple[Any, str]:
    """What a process gave, read; or None and the problem in one sentence. A cut profile is both."""
    if taken.problem:
        return None, taken.problem
    try:
        found = read_stacks(taken.text) if what == "stacks" else read_folded(taken.text)
    except CorralError as error:
        return None, error.message
    if not found:
        return None, "No sample of this process could be taken."
    return found, f"Its profile was cut after {_MOST_TEXT >> 20} MiB." if taken.cut else ""


def _places(good: Sequence[tuple[Taken, Any]]) -> dict[str, Any]:
    found: list[Place] = places((each.rank, stacks) for each, stacks in good)
    return {
        "places": [
            {
                "thread": place.stack.thread,
                "active": place.stack.active,
                "frames": list(place.stack.frames),
                "ranks": list(place.ranks),
            }
            for place in found
        ]
    }


def _functions(good: Sequence[tuple[Taken, list[Sampled]]]) -> dict[str, Any]:
    every = functions(each for _, stacks in good for each in stacks)
    samples = sum(each.samples for _, stacks in good for each in stacks)
    return {"samples": samples, "functions": [each._asdict() for each in every[:100]]}


def _flames(job: str, good: Sequence[tuple[Taken, list[Sampled]]]) -> str:
    stacks = [Sampled((taken.rank, *each.frames), each.samples) for taken, found in good for each in found]
    return flame_graph(tree(stacks, job), f"{job}: {counted(len(good), 'rank')}")


def _print(facts: dict[str, Any]) -> None:
    click.echo(places_text(facts) if facts["what"] == "stacks" else functions_text(facts))
    if "flame-graph.svg" in facts["files"]:
        say(f"Flame graph: {profile_folder.path_of(facts['name'], 'flame-graph.svg')}")
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
@output_option
def show_command(profile: str, output: str) -> None:
    """Show a kept PROFILE again."""
    facts = profile_folder.facts_of(profile)
    if not show(facts, output, names=[profile]):
        _print(facts)


@profile_command.command("rm")
@click.argument("profiles", nargs=-1, required=True, metavar="PROFILE...")
def rm_command(profiles: tuple[str, ...]) -> None:
    """Remove kept profiles."""
    for each in profiles:
        profile_folder.forget(each)
        say(f"Removed {each}.")
