"""The command `corral what-if`: what would become of jobs and queues with other nodes, quotas, jobs or rules."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from corral.cli.connection import connect
from corral.cli.output import output_option, paint, show, span, table
from corral.cli.progress import question_bar
from corral.kernel.errors import InvalidInput
from corral.kernel.units import counted, parse_duration

if TYPE_CHECKING:
    from corral.client.schema import GoalOutcome, JobOutcome, QueueOutcome, Spread, WhatIfAnswer

_MOST_JOBS: Final = 20
_SUFFIXES: Final = (".yaml", ".yml", ".json")


@click.command("what-if")
@click.option("--add-nodes", type=click.IntRange(1), multiple=True, metavar="N", help="Add this many nodes ...")
@click.option("--like", multiple=True, metavar="NODE", help="... like this one.")
@click.option("--remove-node", multiple=True, metavar="NODE", help="Without this node.")
@click.option("--drain", multiple=True, metavar="NODE", help="With this node drained.")
@click.option(
    "--queue",
    multiple=True,
    metavar="NAME=FIELD:VALUE[,...]",
    help="With other fields of a queue: research=deserved.devices:16.",
)
@click.option("--documents", default="", metavar="PATH", help="With the documents of a file or a folder applied.")
@click.option("--submit", multiple=True, metavar="FILE", help="With this job submitted ...")
@click.option("--times", type=click.IntRange(1, 1000), default=1, show_default=True, help="... this many times.")
@click.option("--stop", multiple=True, metavar="JOB", help="With this job stopped.")
@click.option("--priority", multiple=True, metavar="JOB=PRIORITY", help="With another priority of a waiting job.")
@click.option("--policy", default="", metavar="NAME", help="Under this preset or order.")
@click.option("--horizon", default="24h", show_default=True, metavar="DURATION", help="How far to look ahead.")
@click.option(
    "--seeds", type=click.IntRange(1, 20), default=1, show_default=True, help="How many random courses to draw."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="The first seed.")
@click.option(
    "--arrivals", type=click.Choice(("last-week",)), help="Have other jobs arrive as in the server's journal."
)
@click.option("--timeline", is_flag=True, help="Tell also what runs on which devices; for -o json and yaml.")
@click.option("--goal", default="", metavar="EXPRESSION", help="Find the least that reaches this ...")
@click.option(
    "--vary",
    default="",
    metavar="nodes-like=NODE|queue=NAME:FIELD.devices",
    help="... by adding nodes like this one, or by raising this amount of a queue.",
)
@click.option("--all", "everything", is_flag=True, help="List every waiting job.")
@output_option
def what_if_command(everything: bool, output: str, **asked: Any) -> None:
    """Ask the scheduler what would happen: waits by queue and starts of jobs, before beside after.

    Nothing is changed. Without changes it shows what is to be expected. Ctrl-C cancels the question on the server too.

    \b
    corral what-if --add-nodes 4 --like local/node1
    corral what-if --queue research=deserved.devices:16 --horizon 3d
    corral what-if --submit job.yaml --times 10 --seeds 5
    corral what-if --goal 'wait.p95(queue=research) <= 1h' --vary nodes-like=local/node1
    """
    request = _request(**asked)
    with connect() as client, question_bar() as tell:
        answer = client.follow_what_if(tell=tell, **request)
    if show(answer, output, names=[job["id"] for job in answer["jobs"]]):
        return
    click.echo(answer_text(answer, everything=everything))


def _request(
    *,
    add_nodes: Sequence[int],
    like: Sequence[str],
    remove_node: Sequence[str],
    drain: Sequence[str],
    queue: Sequence[str],
    documents: str,
    submit: Sequence[str],
    times: int,
    stop: Sequence[str],
    priority: Sequence[str],
    policy: str,
    horizon: str,
    seeds: int,
    seed: int,
    arrivals: str | None,
    timeline: bool,
    goal: str,
    vary: str,
) -> dict[str, Any]:
    """Return the arguments of the client's call. Raises click.UsageError, InvalidInput for a file that cannot be read."""
    if bool(goal) != bool(vary):
        raise click.UsageError("--goal goes with --vary: what is raised until the goal is reached.")
    if len(add_nodes) != len(like):
        raise click.UsageError("Each --add-nodes N goes with a --like NODE.")
    try:
        seconds = parse_duration(horizon)
    except ValueError as error:
        raise click.UsageError(f"--horizon: {error}") from None
    priorities = dict(_pair(each, "--priority JOB=PRIORITY") for each in priority)
    return {
        "add_nodes": list(zip(add_nodes, like, strict=True)),
        "remove_nodes": remove_node,
        "drain": drain,
        "queues": queue_changes(queue),
        "documents": _documents(documents) if documents else "",
        "submit": [(_text(file), times) for file in submit],
        "stop": stop,
        "priorities": priorities,
        "policy": policy,
        "horizon_seconds": float(seconds),
        "seeds": seeds,
        "seed": seed,
        "timeline": timeline,
        "arrivals": arrivals or "",
        "goal": goal,
        "vary": vary,
    }


def queue_changes(said: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the changed fields by queue of words like `research=deserved.devices:16,weight:2`.

    Raises click.UsageError for words of another form.
    """
    form = "--queue NAME=FIELD:VALUE, such as research=deserved.devices:16"
    found: dict[str, dict[str, Any]] = {}
    for each in said:
        name, fields = _pair(each, form)
        for field in fields.split(","):
            path, colon, value = field.partition(":")
            if not colon or not all(path.split(".")):
                raise click.UsageError(f"{form}; {each[:100]!r} is not of this form.")
            at: Any = found.setdefault(name, {})
            *outer, last = path.split(".")
            for part in outer:
                at = at.setdefault(part, {})
                if not isinstance(at, dict):
                    raise click.UsageError(f"{form}; {each[:100]!r} is not of this form.")
            at[last] = _value(value)
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _pair(text: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise click.UsageError(f"{form}; {text[:100]!r} is not of this form.")
    return name, value


def _text(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("cannot-read", f"{file} cannot be read: {error}.") from None


def _documents(path: str) -> str:
    """Return the documents of a file, or of the YAML and JSON files of a folder, as one text."""
    folder = Path(path)
    if not folder.is_dir():
        return _text(path)
    files = sorted(file for file in folder.iterdir() if file.suffix in _SUFFIXES)
    if not files:
        raise InvalidInput("no-documents", f"The folder {path} has no file of {', '.join(_SUFFIXES)}.")
    return "\n---\n".join(_text(str(file)) for file in files)


def answer_text(answer: WhatIfAnswer, *, everything: bool = False) -> str:
    """Return an answer for people: queues and jobs before and after, who gains and loses, and what was assumed."""
    changed = bool(answer["changes"])
    courses = counted(answer["seeds"], "course")
    state = f", revision {answer['revision']}" if answer.get("revision") else ""
    head = f"The next {span(answer['horizonSeconds'])} from {answer['at']}{state}, {courses}."
    parts = [head + (f"\nChanges: {'; '.join(answer['changes'])}." if changed else "")]
    if goal := answer.get("goal"):
        parts.insert(0, _goal(goal))
    return "\n\n".join([*parts, comparison_text(answer, everything=everything)])


def comparison_text(answer: WhatIfAnswer, *, everything: bool, starts: str = "STARTS IN") -> str:
    """Return queues and jobs before and after, who gains and loses, and what was assumed; `starts` heads the times."""
    changed, parts = bool(answer["changes"]), []
    if answer["queues"]:
        parts.append(_queues(answer["queues"], changed=changed))
    if answer["jobs"]:
        parts.append(_jobs(answer, starts, changed=changed, everything=everything))
    if changed:
        parts.append(_moved(answer))
    parts.append("\n".join(f"- {each}" for each in answer["assumptions"]))
    return "\n\n".join(parts)


def _queues(queues: Sequence[QueueOutcome], *, changed: bool) -> str:
    headings = ["QUEUE", "STARTS", "WAIT P50", "WAIT P95", "DEVICES", "LENT", "BORROWED", "PREEMPTED", "STILL WAIT"]
    rows = []
    for queue in queues:
        before, after = queue["before"], queue["after"]
        pairs = [
            (_number(before["started"]), _number(after["started"])),
            (_time(before["waitP50"], ""), _time(after["waitP50"], "")),
            (_time(before["waitP95"], ""), _time(after["waitP95"], "")),
            (_number(before["devices"]), _number(after["devices"])),
            (_number(before["lent"]), _number(after["lent"])),
            (_number(before["borrowed"]), _number(after["borrowed"])),
            (_number(before["preemptions"]), _number(after["preemptions"])),
            (_number(before["waiting"]), _number(after["waiting"])),
        ]
        rows.append((queue["name"], *(_both(*pair, changed=changed) for pair in pairs)))
    return table(headings, rows, right=frozenset(range(1, len(headings))))


def _jobs(answer: WhatIfAnswer, starts: str, *, changed: bool, everything: bool) -> str:
    moved = {*answer["gains"], *answer["losses"]}
    jobs = answer["jobs"]
    shown = (
        jobs if everything else sorted(jobs, key=lambda job: (job["id"] not in moved, not job["added"]))[:_MOST_JOBS]
    )
    sure = answer["seeds"] == 1
    headings = ["JOB", "USER", "QUEUE", "DEVICES", "WAITED", starts]
    rows = []
    for job in shown:
        times = _both(
            "" if job["added"] else _starts(job["before"], sure, never=bool(job.get("neverBefore"))),
            _starts(job["after"], sure, never=bool(job.get("neverAfter"))),  # an older server does not tell
            changed=changed,
        )
        rows.append((job["name"], job["user"], job["queue"], f"{job['devices']:g}", span(job["waitedSeconds"]), times))
    text = table(headings, rows, right=frozenset({3, 4}))
    left = len(jobs) - len(shown)
    hidden = answer["jobsLeftOut"]
    if left:
        text += f"\n{counted(left, 'more job')} (--all)."
    if hidden:
        text += f"\n{counted(hidden, 'job')} beyond the first {len(jobs)} left out."
    return text


def _goal(goal: GoalOutcome) -> str:
    """Return the outcome of a search, and what was tried."""
    rows = [
        (
            each["value"],
            "refused" if each["refused"] else _measured(each["measured"], goal["unit"]),
            "yes" if each["held"] else "no",
        )
        for each in goal["tries"]
    ]
    says = paint(goal["says"], "green" if goal["reached"] else "yellow")
    return f"Goal: {goal['goal']}\n{says}\n\n{table(('TRIED', 'MEASURED', 'REACHED'), rows, right=frozenset({0, 1}))}"


def _measured(value: float | None, unit: str) -> str:
    if value is None:
        return "never"
    return span(value) if unit == "seconds" else _number(value)


def _moved(answer: WhatIfAnswer) -> str:
    jobs = {job["id"]: job for job in answer["jobs"]}
    lines = []
    for title, ids, colour in (("Gain most", answer["gains"], "green"), ("Lose most", answer["losses"], "yellow")):
        named = ", ".join(f"{jobs[each]['name']} ({_change(jobs[each], answer)})" for each in ids if each in jobs)
        lines.append(f"{paint(title, colour)}: {named or 'none'}.")
    return "\n".join(lines)


def _change(job: JobOutcome, answer: WhatIfAnswer) -> str:
    horizon = answer["horizonSeconds"]
    before, after = (horizon if each["p50"] is None else each["p50"] for each in (job["before"], job["after"]))
    return f"{span(abs(before - after))} {'earlier' if after < before else 'later'}"


def _starts(spread: Spread, sure: bool, *, never: bool) -> str:
    """Return when a job starts; `later` is after the horizon."""
    if never:
        return "never"
    middle = _time(spread["p50"], "later")
    if sure or spread["p10"] == spread["p90"]:
        return middle
    return f"{middle} ({_time(spread['p10'], 'later')} to {_time(spread['p90'], 'later')})"


def _both(before: str, after: str, *, changed: bool) -> str:
    if not changed or before == after:
        return after
    return f"{before or '-'} → {after or '-'}"


def _time(seconds: float | None, none: str) -> str:
    return none if seconds is None else span(seconds)


def _number(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"
