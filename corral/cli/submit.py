"""`corral submit` and `corral run`: submit a job from a file or a command line, after uploading its code if needed."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from corral.cli.connection import connect
from corral.cli.document_files import configuration_of, jobs_of, parts_in, submit_each, tell_left_out
from corral.cli.exit_codes import JOB_FAILED, OK
from corral.cli.output import output_option, say, show
from corral.kernel.errors import InvalidInput, Unavailable

if TYPE_CHECKING:
    from corral.client.schema import JobDetail
    from corral.client.sync import Client

_UNKNOWN_PAUSES: Final = (1.0, 2.0, 4.0)
"""Seconds before each retry of a submission whose outcome is unknown."""
_SENT_OPTIONS = (
    click.option("-f", "--follow/--no-follow", default=None, help="Print its log; its result is the exit code."),
    click.option("--wait-for-capacity", is_flag=True, help="Accept it although no machine known now could hold it."),
    click.option("--no-image", is_flag=True, help="Run without the image that it names, as plain processes."),
    click.option("--dry-run", is_flag=True, help="Only say whether it would be accepted, and whether it would start."),
    click.option("--idempotency-key", default="", help="The same key again gives the same job; default: a new one."),
    output_option,
)


def _sent(command: Any) -> Any:
    for option in reversed(_SENT_OPTIONS):
        command = option(command)
    return command


@click.command("submit")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("-p", "--set", "parameters", multiple=True, metavar="NAME=VALUE", help="A parameter of the file.")
@click.option(
    "--from",
    "source",
    default="",
    metavar="JOB",
    help="Your job that the file came from; its secrets replace ******.",
)
@_sent
def submit_command(file: str, parameters: Sequence[str], **sent: Any) -> int:
    """Submit a job FILE (- reads standard input).

    Of a file of several documents, every job is submitted after all of them passed the checks. Kubernetes objects
    beside them (such as a Service) are listed and skipped.

    \b
    corral submit job.yaml               prints the job's id
    corral submit -f job.yaml            follows its log and ends with its result
    corral submit job.yaml --set lr=0.1  with a parameter
    corral submit job.yaml --from j1     with the secrets that j1 was submitted with, where the file has ******
    """
    text = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    folder = Path.cwd() if file == "-" else Path(file).resolve().parent
    pairs = dict(pair(each) for each in parameters)
    shown = "standard input" if file == "-" else file
    parts = parts_in(text, shown)
    jobs = jobs_of(parts) if parts else []
    with connect() as client, _named(shown):
        if len(jobs) < 2 or configuration_of(parts):
            return _send(client, text, code=send_code(client, _code_folder(text, folder)), parameters=pairs, **sent)
        done = submit_jobs(client, jobs, folder, pairs, sent)
    tell_left_out(parts)
    return done


def submit_jobs(
    client: Client, texts: list[bytes], folder: Path, parameters: dict[str, str], sent: dict[str, Any]
) -> int:
    """Submit the jobs of one file, or none if one of them is refused; return the exit code.

    Raises the error of the refused job.
    """
    codes = {text: send_code(client, _code_folder(text, folder)) for text in texts}
    numbers = {text: at for at, text in enumerate(texts)}
    asked = {name: sent[name] for name in ("wait_for_capacity", "no_image", "source")}

    def check(text: bytes) -> None:
        if not sent["dry_run"]:
            client.submit(text, code=codes[text], parameters=parameters, dry_run=True, **asked)

    def submit(text: bytes) -> int:
        key = f"{sent['idempotency_key']}-{numbers[text]}" if sent["idempotency_key"] else ""
        return _send(client, text, code=codes[text], parameters=parameters, **{**sent, "idempotency_key": key})

    return submit_each(texts, check, submit)


@contextlib.contextmanager
def _named(shown: str) -> Iterator[None]:
    """Replace "the job file" by the file's local name in the server's error messages."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(error.code, error.message.replace("the job file:", f"{shown}:")) from None


@click.command("clone")
@click.argument("job")
@click.option("-p", "--set", "parameters", multiple=True, metavar="NAME=VALUE", help="Another value of a parameter.")
@_sent
def clone_command(job: str, parameters: Sequence[str], **sent: Any) -> int:
    """Submit the file of JOB again: with its code, its parameters, and its secrets if it is yours.

    Edits of the job since are not in its file; they are listed.

    
    corral clone digits --dry-run            whether it would be accepted, and whether it would start
    corral clone digits -p lr=0.01 -f        with another parameter; follow its log
    corral get digits --file > digits.yaml   to change more, and to submit it with --from digits
    """
    with connect() as client:
        found = client.job_file(job)
        if edits := found.get("edits"):  # an older server does not tell
            say(f"The job was edited since, and the new one is as its file says. {' '.join(edits)}")
        pairs = {**found["parameters"], **dict(pair(each) for each in parameters)}
        source = found["job"] if found["secrets"] else ""
        return _send(client, found["text"].encode(), code=found["code"], parameters=pairs, source=source, **sent)


@click.command("run", context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--name", default="", help="The job's name; default: the program's, with a few letters.")
@click.option("-n", "--replicas", type=click.IntRange(1, 10_000), default=1, show_default=True, help="How many tasks.")
@click.option(
    "-d", "--devices", type=click.FloatRange(0, 1024), default=0, help="Devices per task; 0.5 is half of one."
)
@click.option("--model", default="", help="The model of the devices.")
@click.option("--cpu", default="1", show_default=True, help="Processors per task.")
@click.option("--memory", default="", help="Memory per task, such as 2Gi.")
@click.option("--framework", default="", help="shell, pytorch, jax, …; default: shell for one task, else pytorch.")
@click.option("--image", default="", help="The container image.")
@click.option("-e", "--env", "env", multiple=True, metavar="NAME=VALUE", help="An environment variable.")
@click.option("--code", default="", metavar="FOLDER", help="Pack this folder; it is the working directory.")
@click.option("--queue", default="", help="The queue; default: default.")
@click.option("--priority", default="", help="crit, prod, test, oppo or a number.")
@click.option("--topology", default="", metavar="LEVEL", help="Keep all tasks inside one node, rack, ….")
@click.option("--max-duration", default="", help="End it after this time, such as 2h.")
@click.option("--retries", type=click.IntRange(-2, 10_000), default=0, show_default=True, help="Tries after a failure.")
@click.option("--detach", is_flag=True, help="Print the id and go on, instead of following.")
@_sent
def run_command(command: Sequence[str], env: Sequence[str], code: str, detach: bool, **asked: Any) -> int:
    """Run COMMAND as a job, without a file, and follow it. Options of corral come before it.

    \b
    corral run -- hostname
    corral run --replicas 2 --devices 1 -- python train.py
    corral run --code . -d 1 -- python train.py --epochs 5
    """
    if asked["follow"] is None:
        asked["follow"] = not detach and not asked["dry_run"] and asked["output"] == "table"
    sent = {each: asked.pop(each) for each in ("follow", "wait_for_capacity", "no_image", "dry_run")}
    sent |= {each: asked.pop(each) for each in ("idempotency_key", "output")}
    text = json.dumps(job_of(command, dict(pair(each) for each in env), **asked)).encode()
    with connect() as client:
        return _send(client, text, code=send_code(client, Path(code) if code else None), parameters={}, **sent)


def job_of(command: Sequence[str], env: dict[str, str], **asked: Any) -> dict[str, Any]:
    """Return the short document of the options of `corral run`, without fields that were not given."""
    program = os.path.basename(command[0]).lower().split(".")[0]
    clean = "".join(char if char.isascii() and char.isalnum() else "-" for char in program).strip("-") or "run"
    devices = devices_of(asked["devices"], asked["model"])
    resources = {"cpu": asked["cpu"], "memory": asked["memory"], "devices": devices}
    role = {
        "replicas": asked["replicas"],
        "resources": {name: value for name, value in resources.items() if value},
        "command": list(command),
        "image": asked["image"],
        "env": env,
    }
    document = {
        "name": asked["name"] or f"{clean[:40]}-{secrets.token_hex(2)}",
        "framework": asked["framework"] or ("pytorch" if asked["replicas"] > 1 and asked["devices"] else "shell"),
        "roles": {"worker": {name: value for name, value in role.items() if value}},
        "queue": asked["queue"],
        "priority": asked["priority"],
        "topology": {"required": asked["topology"]} if asked["topology"] else None,
        "maxDuration": asked["max_duration"],
        "retryPolicy": {"maxRetries": asked["retries"]} if asked["retries"] else None,
    }
    return {name: value for name, value in document.items() if value}


def devices_of(count: float, model: str) -> Any:
    """Return the job file's value for a number of devices, or for a fraction of one, of a model."""
    if not model:
        return int(count) if count == int(count) else count
    if 0 < count < 1:
        percent = round(count * 100)
        return {"count": 1, "share": {"computePercent": percent, "memoryPercent": percent}, "model": model}
    return {"count": int(count) if count == int(count) else count, "model": model}


def _send(
    client: Client,
    text: bytes,
    *,
    code: str,
    parameters: dict[str, str],
    follow: bool | None,
    output: str,
    dry_run: bool,
    idempotency_key: str,
    source: str = "",
    **flags: bool,
) -> int:
    key = idempotency_key or secrets.token_hex(16)
    asked: dict[str, Any] = {
        "code": code,
        "parameters": parameters,
        "dry_run": dry_run,
        "idempotency_key": key,
        "source": source,
        **flags,
    }
    job = _submitted(lambda: client.submit(text, **asked), key)
    for note in job.get("notes", ()):
        say(note)
    if dry_run:
        _tell_trial(job, output)
        return OK
    array = "array" in job.get("links", {})
    if not show(job, output, names=[job["id"]]):
        _tell_accepted(job, follow=bool(follow), array=array)
    if not follow:
        return OK
    from corral.cli.follow import follow_job

    jobs = _jobs_of_array(client, job["id"]) if array else [job["id"]]
    states = {follow_job(client, each)["state"] for each in jobs}
    return OK if states == {"succeeded"} else JOB_FAILED


def _submitted(submit: Callable[[], JobDetail], key: str) -> JobDetail:
    """Submit, and retry with the same key while it is unknown whether the job was stored; it is stored once.

    Raises the errors of `submit`.
    """
    for pause in _UNKNOWN_PAUSES:
        try:
            return submit()
        except Unavailable as error:
            if error.code != "store-outcome-unknown":
                raise
            time.sleep(pause)
    try:
        return submit()
    except Unavailable as error:
        if error.code == "store-outcome-unknown":
            say(f"To repeat it without a second job: --idempotency-key {key}")
        raise


def _tell_accepted(job: JobDetail, *, follow: bool, array: bool) -> None:
    if follow and not array:
        say(f"{job['name']} is job {job['id']}.")
        return
    click.echo(job["id"])
    say(f"Its jobs: corral ls --tag array:{job['id']}" if array else f"Follow it: corral logs -f {job['id']}")


def _jobs_of_array(client: Client, first: str) -> list[str]:
    page = client.jobs(tag=f"array:{first}", order="oldest", limit=1000)  # the largest array has 1,000 jobs
    return [job["id"] for job in page["items"]]


def _tell_trial(trial: JobDetail, output: str) -> None:
    answer: dict[str, Any] = dict(trial)
    if show(answer, output):
        return
    starts = {True: "would start now", False: "would wait", None: "would be accepted; nobody could say when it starts"}
    reasons = answer.get("reasons")
    click.echo(f"The job {starts[answer['wouldStart']]}" + (f": {reasons['binding']['message']}" if reasons else "."))


def _code_folder(text: bytes, folder: Path) -> Path | None:
    """Return the local folder of a job file's `code:`; None for a URI, which the server reads."""
    if b"code" not in text:
        return None
    from corral.spec.local_code import local_code

    named = local_code(text)
    return folder / os.path.expanduser(named) if named else None


def send_code(client: Client, folder: Path | None) -> str:
    """Upload the archive of `folder` unless the server has it, and return its digest; "" for no folder."""
    if folder is None:
        return ""
    from corral.cli.code_archive import pack
    from corral.cli.progress import progress_bar

    archive = pack(folder)
    with archive.file:
        with progress_bar(archive.size, f"Sending {archive.files} files") as tell:
            client.send_code(archive.file, archive.size, archive.digest, tell)
    return archive.digest


def pair(text: str) -> tuple[str, str]:
    """Split `NAME=VALUE`.

    Raises InvalidInput for any other text.
    """
    name, sign, value = text.partition("=")
    if not name or not sign:
        raise InvalidInput("invalid-parameter", f"{text!r} must read NAME=VALUE.")
    return name, value
