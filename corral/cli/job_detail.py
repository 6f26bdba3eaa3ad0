"""The text of `corral get JOB`: placement, reasons for waiting, result, and next steps."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from corral.cli.output import age, devices_of, fields, paint, part_words, span, state, table
from corral.model.exits import NEVER_RETRIED, SUCCEEDED

if TYPE_CHECKING:
    from corral.client.schema import ExitView, JobDetail, TaskRecord

_SHOWN = 40
_TASK_WORDS: Final = {
    "creation-pending": "waiting",
    "creation-requested": "waiting",
    "preparing": "starting",
    "deletion-pending": "stopping",
    "deleting": "stopping",
    "attempt-completed": "waiting",
}
_OPENED = 4
"""Services whose commands are shown."""


def detail_text(job: JobDetail, tasks: Sequence[TaskRecord] = ()) -> str:
    """Return a job's details as text that fits a screen; `tasks` say how its tasks ended."""
    parts = [_head(job), _reasons(job), _exit(job), _placement(job, tasks), _receipts(job), _links(job)]
    return "\n\n".join(part for part in parts if part)


def _head(job: JobDetail) -> str:
    tasks = job["tasks"]
    counts = ", ".join(
        f"{tasks[kind]} {kind}" for kind in ("waiting", "running", "succeeded", "failed", "stopped") if tasks.get(kind)
    )  # an older server does not count stopped tasks
    pairs: dict[str, object] = {
        "Name": paint(job["name"], bold=True),
        "Id": job["id"],
        "State": state(job["state"]),
        "User": job["user"],
        "Queue": f"{job['queue']}, priority {job['priority']}",
        "Type": job["jobType"],
        "Tasks": f"{tasks['total']}" + (f" ({counts})" if counts else ""),
        "Replicas": _replicas(job),
        "Devices": devices_of(job, " of "),
        "Submitted": f"{job['createdAt']} ({age(job['createdAt'])} ago)",
        "Waited": _waited(job),
        "Ran": age(job["startedAt"], job["endedAt"]),
        "Checkpoint": _checkpoint(job),
        "Progress": _progress(job),
        "Attempt": f"{job['attempt']}, counted from 0 (corral attempts {job['id']})" if job["attempt"] else "",
        "Retries": _retries(job),
        "Depends on": ", ".join(job.get("dependsOn", ())),
        "Tags": ", ".join(job["tags"]),
        "Open it": _services(job),
    }
    return fields(pairs)


def _services(job: JobDetail) -> str:
    """Return the commands that open the services of a running job, those of the first task of each role."""
    if job["state"] != "running":
        return ""
    named = [
        (f"{role['name']}-0", name)
        for role in job["document"]["spec"]["roles"]
        for name in [*(["notebook"] if job["jobType"] == "notebook" else []), *(each["name"] for each in role["ports"])]
    ]
    if len(named) == 1 and job["tasks"]["total"] == 1:
        return f"corral open {job['name']}"
    commands = [f"corral open {job['name']} {task} {name}" for task, name in dict.fromkeys(named)]
    return "; ".join(commands[:_OPENED]) + ("; …" if len(commands) > _OPENED else "")


def _waited(job: JobDetail) -> str:
    """Return the total time that the job has waited, without its runs between."""
    waited, since = job.get("waitedSeconds", 0.0), job.get("waitingSince")
    if since:
        waited += max(0.0, time.time() - datetime.fromisoformat(since).timestamp())
    return span(waited) if waited >= 1 else ""


def _replicas(job: JobDetail) -> str:
    """Return the replicas that the scheduler assigns to an elastic job now, by node, out of those requested."""
    counted = job["document"]["spec"]["replicaSpec"]
    if counted["minReplicas"] == counted["maxReplicas"]:
        return ""
    targets = counted["targetReplicas"]
    where = ", ".join(f"{count} on {node}" for node, count in list(targets.items())[:5])
    bounds = f"{sum(targets.values())} of {counted['replicas']}, at least {counted['minReplicas']}"
    return bounds + (f" ({where}{', …' if len(targets) > 5 else ''})" if where else "")


def _checkpoint(job: JobDetail) -> str:
    """Return the time of the latest checkpoint, after which work would be lost."""
    saved = job.get("checkpointedAt")
    return f"{saved} ({age(saved)} ago)" if saved and job["state"] in ("running", "stopping") else ""


def _progress(job: JobDetail) -> str:
    """Return what the job's program last said of its work, such as `42 % (step 420 of 1000), loss 0.31, 5 s ago`."""
    work = job.get("work")
    if work is None:
        return ""
    step = f"step {work['step']:g}" if work["step"] is not None else ""
    of = f"{step} of {work['steps']:g}" if step and work["steps"] is not None else step
    done = f"{work['progress']:.0%}".replace("%", " %") if work["progress"] is not None else ""
    parts = [f"{done} ({of})" if done and of else done or of]
    parts += [f"loss {work['loss']:.4g}" if work["loss"] is not None else ""]
    parts += [f"{work['throughput']:.4g}/s" if work["throughput"] is not None else ""]
    parts += [f"gradient noise {work['gradientNoise']:.4g}" if work["gradientNoise"] is not None else ""]
    return ", ".join(part for part in [*parts, f"{age(work['at'])} ago"] if part)


def _retries(job: JobDetail) -> str:
    if not job["retries"]:
        return ""
    left, of_tasks = job.get("retriesLeft"), job.get("taskRetries")
    alone = f" ({of_tasks} of single tasks)" if of_tasks else ""
    return f"{job['retries']}{alone}" + (f", {left} left for the job" if left is not None else "")


def _reasons(job: JobDetail) -> str:
    reasons = job.get("reasons")
    word = {"stopping": "Yields:", "waiting": "Waiting:"}.get(job["state"], "Retries:")
    because = paint(word, "yellow", bold=True)
    if reasons:
        lines = [f"{because} {reasons['binding']['message']}"]
        lines += [f"  also: {other['message']}" for other in reasons["others"]]
        if job["state"] == "waiting":
            lines.append(f"  Who is ahead of it, and when it may start: corral explain {job['id']}")
        if not reasons["possible"]:
            lines.append("  it never starts as it is")
        return "\n".join(lines)
    waiting = job["waiting"]
    return f"{because} {waiting['message']}" if waiting else ""


def _exit(job: JobDetail) -> str:
    end = job["exit"]
    if end is None:
        return ""
    said = (
        "" if end["class"] == "unknown" else f", {end['class']}"
    )  # nothing is known of the retry class, not of the code
    colour = "green" if end["class"] == "succeeded" else "red"
    line = f"{paint('Ended:', colour, bold=True)} {end['phrase']} (exit code {end['code']}{said})"
    if end["message"]:
        line += "\n  " + end["message"].replace("\n", "\n  ")
    if job["state"] == "failed":
        line += f"\n  Read what it printed: corral logs {job['id']} --tail 50"
    return line


def task_word(kept: str, end: ExitView | None) -> str:
    """Return a task's state in the words for jobs: a completed task succeeded, failed or was stopped."""
    if kept != "completed" or end is None:
        return _TASK_WORDS.get(kept, kept)
    if end["code"] == SUCCEEDED:
        return "succeeded"
    return "stopped" if end["code"] in NEVER_RETRIED else "failed"


def _ending(end: ExitView | None) -> str:
    return "" if end is None or end["code"] == SUCCEEDED else f"{end['phrase']} ({end['code']})"


def _placement(job: JobDetail, tasks: Sequence[TaskRecord]) -> str:
    placed = job.get("placement", [])
    if not placed:
        return ""
    ends = {(task["role"], task["index"]): task["exit"] for task in tasks if task["state"] == "completed"}
    rows = [
        (
            f"{task['role']}-{task['index']}",
            state(task_word(task["state"], ends.get((task["role"], task["index"])))),
            *((_ending(ends.get((task["role"], task["index"]))),) if ends else ()),
            "" if task.get("rank") is None else task["rank"],
            task["node"],
            ",".join(str(device) for device in task["devices"]) + part_words(task.get("share")),
            task["host"],
            " ".join(f"{name}={','.join(map(str, ports))}" for name, ports in task["ports"].items()),
        )
        for task in placed[:_SHOWN]
    ]
    text = table(("TASK", "STATE", *(("EXIT",) if ends else ()), "RANK", "NODE", "DEVICES", "HOST", "PORTS"), rows)
    rest = job["tasks"]["total"] - len(rows)
    notes = "".join(f"\nNote: {note}" for note in job.get("notes", ()))
    return text + (f"\n… and {rest} more; corral get -o json shows them" if rest > 0 else "") + notes


def _receipts(job: JobDetail) -> str:
    from corral.cli.suspend_and_drain import receipts_table

    found = job.get("receipts", [])
    return f"{paint('Had to yield', bold=True)}\n{receipts_table(found)}" if found else ""


def _links(job: JobDetail) -> str:
    return fields({name: url for name, url in job.get("links", {}).items() if not url.startswith("/api/")})
