"""Follow a job: show its reason for waiting, then its log, then its result, across restarts of the server."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from corral.cli.output import age, paint, say, state
from corral.cli.progress import StatusLine
from corral.kernel.errors import Unavailable

if TYPE_CHECKING:
    from corral.client.schema import JobDetail
    from corral.client.sync import Client

_AWAY_SECONDS = 60.0


def follow_job(client: Client, ref: str) -> JobDetail:
    """Print a job's log until it ends, then its result; return the ended job.

    Ctrl-C ends the following, not the job.
    """
    status = StatusLine()
    try:
        _await_start(client, ref, status)
        status.clear()
        print_log(client, ref, follow=True)
        job = client.wait(ref)
    except KeyboardInterrupt:
        status.clear()
        say(f"It goes on; follow it again: corral logs -f {ref}, end it: corral stop {ref}")
        raise
    finally:
        status.clear()
    say(_end(job))
    return job


def print_log(client: Client, ref: str, *, follow: bool, tail: int | None = None, prefix: bool | None = None) -> None:
    """Print the log of all tasks; a job of several tasks gets task names before the lines.

    While following, an unreachable server is retried for `_AWAY_SECONDS`, and the log continues where it stopped.
    """
    if prefix is None:
        prefix = client.job(ref)["tasks"]["total"] > 1
    printed = 0
    away = 0.0
    while True:
        try:
            skip = printed if follow and not prefix and tail is None else 0
            for piece in client.log(ref, follow=follow, tail=tail, prefix=prefix):
                away = 0.0
                fresh, skip = piece[skip:], max(0, skip - len(piece))
                sys.stdout.buffer.write(fresh)
                sys.stdout.buffer.flush()
                printed += len(fresh)
            return
        except Unavailable:
            away = away or time.monotonic()
            if not follow or time.monotonic() - away > _AWAY_SECONDS:
                raise
            time.sleep(0.5)  # the server is unreachable; its tasks keep writing


def _await_start(client: Client, ref: str, status: StatusLine) -> None:
    class Started(Exception):
        pass

    def tell(job: JobDetail) -> None:
        if job["state"] not in ("waiting", "starting"):
            raise Started
        reason = waiting["message"] if (waiting := job["waiting"]) else ""
        status.tell(f"{job['name']}: {job['state']} {reason}")

    try:
        client.wait(ref, tell=tell)
    except Started:
        return


def _end(job: JobDetail) -> str:
    ran = age(job["startedAt"], job["endedAt"])
    end = job["exit"]
    line = f"{job['name']}: {state(job['state'])}" + (f" after {ran}" if ran else "")
    if end is not None and job["state"] != "succeeded":
        line += f"; {end['phrase']} (exit code {end['code']})"
        if end["message"]:
            line += "\n" + paint(end["message"], dim=True)
    return line
