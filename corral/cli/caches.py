"""`corral cache`: the bundles of compiled code that your tasks published, and what a job made of them."""

from __future__ import annotations

from typing import Any

import click

from corral.cli.accounts import Listing
from corral.cli.connection import connect
from corral.cli.output import age, output_option, say, show, table
from corral.kernel.units import format_memory


@click.group("cache", cls=Listing, invoke_without_command=True)
@click.option("--everyone", is_flag=True, help="The bundles of all users, for administrators.")
@output_option
@click.pass_context
def cache_command(context: click.Context, everyone: bool, output: str) -> None:
    """List, inspect and remove bundles of compiled code; a job file asks for them with compileCache."""
    if context.invoked_subcommand is not None:
        return
    with connect() as client:
        found = client.caches(everyone=everyone)
    bundles = found["items"]
    if show(found, output, names=[each["id"] for each in bundles]):
        return
    rows = [
        (each["id"][:12], _shared_by(each), each["user"], _size(each["size"]), str(each["uses"]), age(each["usedAt"]))
        for each in bundles
    ]
    click.echo(table(("ID", "SHARED BY", "USER", "SIZE", "USES", "LAST USED"), rows))
    if found["mostBytes"]:
        say(f"You keep {_size(found['bytes'])} of {_size(found['mostBytes'])}.")


@cache_command.command("show")
@click.argument("cache")
@output_option
def show_cache(cache: str, output: str) -> None:
    """Show what a bundle is made for and who published it."""
    with connect() as client:
        bundle = _named(client.caches()["items"], cache)
    if show(bundle, output, names=[bundle["id"]]):
        return
    lines = [
        ("id", bundle["id"]),
        ("shared by", _shared_by(bundle)),
        ("published", f"by {bundle['user']}, job {bundle['job']}, {bundle['publishedAt']}"),
        ("size", f"{_size(bundle['size'])}, {bundle['files']} files, given to {bundle['uses']} tasks"),
        ("SHA-256", bundle["digest"]),
        *sorted(bundle["facts"].items()),
    ]
    for name, value in lines:
        click.echo(f"{name:12} {value}")


@cache_command.command("job")
@click.argument("job")
@output_option
def show_job(job: str, output: str) -> None:
    """Show what the tasks of a job made of the cache: hits, bytes and seconds."""
    with connect() as client:
        found = client.job_cache(job)
    if show(found, output, names=[each["attempt"] for each in found["uses"]]):
        return
    rows = [
        (
            f"{each['role']}-{each['index']}",
            "hit" if each["hit"] else "cold",
            _size(each["bytes"]),
            _seconds(each["restoreSeconds"]),
            _seconds(each["firstStepSeconds"]),
            _seconds(each["savedSeconds"]),
            "" if each["newFiles"] is None else str(each["newFiles"]),
        )
        for each in found["uses"]
    ]
    click.echo(table(("TASK", "CACHE", "BYTES", "RESTORE", "FIRST STEP", "SAVED", "NEW FILES"), rows))
    if "source" in found:  # an older server does not tell
        say(_asked_by(found))


@cache_command.command("rm")
@click.argument("caches", nargs=-1, required=True, metavar="ID...")
def remove_caches(caches: tuple[str, ...]) -> None:
    """Remove bundles; tasks that start later compile anew."""
    with connect() as client:
        known = client.caches()["items"]
        for each in caches:
            bundle = _named(known, each)
            client.remove_cache(bundle["id"])
            say(f"Removed {bundle['id'][:12]} ({_size(bundle['size'])}).")


def _named(bundles: list[Any], start: str) -> Any:
    """The bundle whose id begins so, the only one."""
    found = [each for each in bundles if each["id"].startswith(start)]
    if len(found) != 1:
        how = "several bundles have ids that begin" if found else "no bundle of yours has an id that begins"
        raise click.ClickException(f"{how} with {start}; corral cache shows them".capitalize() + ".")
    return found[0]


def _asked_by(found: Any) -> str:
    """Who decided what is kept of the job's compiled code."""
    origins = {"job": "the job file", "queue": f"the queue {found['queue']}", "server": "the server"}
    return f"compileCache is {found['share']}, as {origins[found['source']]} says."


def _shared_by(bundle: Any) -> str:
    return f"{bundle['share']} {bundle['of']}"


def _size(count: int) -> str:
    return format_memory(count)


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.1f} s"
