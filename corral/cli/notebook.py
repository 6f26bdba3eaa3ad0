"""`corral notebook` and `corral tensorboard`: start one as a job, and open it in a browser once it runs."""

from __future__ import annotations

import json
import secrets
import threading
import time
from typing import TYPE_CHECKING, Any

import click

from corral.cli.connection import connect
from corral.cli.open_service import open_in_browser
from corral.cli.output import say
from corral.cli.submit import devices_of
from corral.client.operations.jobs import ENDED
from corral.kernel.errors import Conflict, NotFound, Unavailable

if TYPE_CHECKING:
    from corral.client.schema import JobDetail
    from corral.client.sync import Client

_ROLE = "main"
_LOOK_SECONDS = 0.5
_MOST_LOOK_SECONDS = 5.0
"""The most seconds between two looks, and of one look at a program that says nothing."""
_ANSWER_SECONDS = 120.0
"""Seconds within which the program of a running task should answer; afterwards its address is printed all the same."""
_ASK = b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n"
_NOT_FOUND = 127
"""The shell's exit code for a program that is not there."""
_SYSTEM = "/usr/local/bin:/usr/bin:/bin"
"""The folders of programs beside those of an environment."""


@click.command("notebook")
@click.argument("folder", required=False, default="")
@click.option("--name", default="", help="The job's name; default: notebook, with a few letters.")
@click.option("--image", default="", help="The container image, which has Jupyter.")
@click.option(
    "--environment", default="", metavar="FOLDER", help="A Python environment of the node, which has Jupyter."
)
@click.option("-d", "--devices", type=click.FloatRange(0, 1024), default=0, help="Devices; 0.5 is half of one.")
@click.option("--model", default="", help="The model of the devices.")
@click.option("--cpu", default="2", show_default=True, help="Processors to use.")
@click.option("--memory", default="", help="Memory to use, such as 8Gi.")
@click.option(
    "--idle", default="1h", show_default=True, help="Suspend it when nobody works in it for so long; 0: never."
)
@click.option("--queue", default="", help="The queue; default: default.")
@click.option("--detach", is_flag=True, help="Print the id and go on, instead of waiting for it to run.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def notebook_command(folder: str, detach: bool, no_browser: bool, **asked: Any) -> None:
    """Start a notebook and open it in a browser once it runs.

    FOLDER is what JupyterLab shows: an absolute path, or a storage and a folder in it (STORAGE/PATH). By default it is a
    folder of the notebook's own, which the local engine keeps until the job is over.

    \b
    corral notebook --environment /opt/envs/torch --devices 1
    corral notebook home/lab --image quay.io/jupyter/pytorch-notebook --idle 30m
    """
    with connect() as client:
        job = client.submit(json.dumps(document_of(folder, **asked)), idempotency_key=secrets.token_hex(16))
        if detach:
            click.echo(job["id"])
            say(f"Open it once it runs: corral open {job['name']}")
            return
        say(f"{job['name']} is job {job['id']}; this command waits until it can be opened.")
        await_run(client, job)
        await_answer(client, job, "notebook")
        open_in_browser(client, job["id"], _ROLE, 0, "notebook", no_browser=no_browser)
        say(f"Give its devices back with corral suspend {job['name']}, and go on with corral resume {job['name']}.")


@click.command("tensorboard")
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def tensorboard_command(jobs: tuple[str, ...], no_browser: bool) -> None:
    """Open TensorBoard for what jobs write: one of them, or several together.

    It runs as a job of yours without devices, with the programs of the first one that is yours, and ends after 8 hours,
    or by corral stop. The same jobs get the same TensorBoard again.
    """
    with connect() as client:
        job = client.start_tensorboard(jobs)
        say(f"{job['name']} is job {job['id']}; this command waits until it can be opened.")
        await_run(client, job)
        await_answer(client, job, "tensorboard")
        open_in_browser(client, job["id"], _ROLE, 0, "tensorboard", no_browser=no_browser)


def document_of(folder: str = "", **asked: Any) -> dict[str, Any]:
    """Return the short document of the options of `corral notebook`, without fields that were not given.

    Raises UsageError for an image beside an environment.
    """
    if asked["image"] and asked["environment"]:
        raise click.UsageError("Name an image or an environment, not both.")
    storage, directory = _place(folder)
    programs = f"{asked['environment'].rstrip('/')}/bin:{_SYSTEM}" if asked["environment"] else ""
    resources = {
        "cpu": asked["cpu"],
        "memory": asked["memory"],
        "devices": devices_of(asked["devices"], asked["model"]),
    }
    document = {
        "name": asked["name"] or f"notebook-{secrets.token_hex(2)}",
        "framework": "notebook",
        "queue": asked["queue"],
        "image": asked["image"],
        "idle": "" if asked["idle"] == "0" else asked["idle"],
        "storages": [storage] if storage else [],
        "workingDir": directory,
        "env": {"PATH": programs} if programs else {},
        "roles": {_ROLE: {"resources": {name: value for name, value in resources.items() if value}}},
    }
    return {name: value for name, value in document.items() if value}


def _place(folder: str) -> tuple[str, str]:
    """The storage and the working directory that a folder means."""
    if not folder or folder.startswith("/"):
        return "", folder
    return folder.partition("/")[0], f"/mnt/{folder.rstrip('/')}"


def await_run(client: Client, job: JobDetail) -> None:
    """Wait until a job runs.

    Raises Conflict when it ends before.
    """
    found = job
    while found["tasks"]["running"] == 0:
        _check_live(found)
        time.sleep(_LOOK_SECONDS)
        found = client.job(job["id"])


def await_answer(client: Client, job: JobDetail, port: str) -> None:
    """Wait until the program at a port of a running job answers, and say so if it takes too long.

    Raises Conflict when the job ends before.
    """
    until, rest = time.monotonic() + _ANSWER_SECONDS, _LOOK_SECONDS
    while not _answers(client, job["id"], port):
        _check_live(client.job(job["id"]))
        if time.monotonic() > until:
            say(f"{job['name']} does not answer yet; once it does, corral open {job['name']} opens it.")
            return
        time.sleep(rest)
        rest = min(2 * rest, _MOST_LOOK_SECONDS)  # each look is an entry of the audit log


def _answers(client: Client, job: str, port: str) -> bool:
    try:
        with client.reach(job, _ROLE, 0, port) as stream:
            limit = threading.Timer(_MOST_LOOK_SECONDS, stream.close)
            limit.daemon = True
            limit.start()
            try:
                stream.send(_ASK)
                return any(stream)
            finally:
                limit.cancel()
    except (Conflict, NotFound, Unavailable):  # the task is not there yet, or nothing listens
        return False


def _check_live(job: JobDetail) -> None:
    """Raise Conflict, with the reason, for a job that has ended."""
    if job["state"] not in ENDED:
        return
    end = job["exit"]
    why = f": {end['phrase']} ({end['code']})" if end is not None and end["code"] else ""
    hint = ""
    if end is not None and end["code"] == _NOT_FOUND and job["jobType"] == "notebook":
        hint = " Jupyter is not among its programs; name an --environment or an --image that has it."
    said = f"{job['name']} has ended ({job['state']}{why}); see corral logs {job['id']}.{hint}"
    raise Conflict("job-over", said)
