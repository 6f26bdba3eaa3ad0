"""`corral notifications`: the channels on which people are told of their jobs, and what was sent there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import click

from corral.cli.accounts import Listing
from corral.cli.connection import connect
from corral.cli.output import age, output_option, say, show, table
from corral.kernel.units import format_duration, parse_duration

_KINDS: Final = ("mail", "webhook", "slack", "teams", "apprise")
_EVENTS: Final = ("started", "succeeded", "failed", "stopped", "retried", "preempted", "idle", "hung", "ended")


class _Duration(click.ParamType[int]):
    """A duration such as `30m`, in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Seconds; fails for what is no duration."""
        if isinstance(value, int):
            return value
        try:
            return parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _preferences(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--jobs", default=None, metavar="PATTERN", help="Only jobs with such names, as in 'train-*'."),
        click.option("--waiting", type=_Duration(), default=None, help="Tell of jobs that wait this long: 30m, 2h."),
        click.option(
            "-e", "--event", "events", multiple=True, type=click.Choice(_EVENTS), help="What is told; repeat it."
        ),
    ):
        function = option(function)
    return function


@click.group("notifications", cls=Listing, invoke_without_command=True)
@output_option
@click.pass_context
def notifications_command(context: click.Context, output: str) -> None:
    """List, add and verify the channels on which you are told of your jobs."""
    if context.invoked_subcommand is not None:
        return
    with connect() as client:
        found = client.channels()["items"]
    if show(found, output, names=[each["name"] for each in found]):
        return
    rows = [
        (
            each["name"],
            each["kind"],
            each["address"],
            "yes" if each["verified"] else "no",
            ", ".join(each["events"]),
            format_duration(each["waitingSeconds"]) if each["waitingSeconds"] else "",
            each["jobs"],
        )
        for each in found
    ]
    click.echo(table(("NAME", "KIND", "ADDRESS", "VERIFIED", "EVENTS", "WAITING", "JOBS"), rows))


@notifications_command.command("add")
@click.argument("name")
@click.argument("kind", type=click.Choice(_KINDS))
@click.argument("address", default="")
@_preferences
def add_channel(
    name: str, kind: str, address: str, events: Sequence[str], waiting: int | None, jobs: str | None
) -> None:
    """Add a channel; it is sent a code for `corral notifications verify`.

    The URL of a webhook or service is a secret: leave it out, and it is asked for or read from standard input. Without
    --event you are told of the end of jobs and of preemptions.

    \b
    corral notifications add me mail ada@example.org --event failed --waiting 2h
    corral notifications add team slack < webhook.url
    corral notifications add phone apprise        # asks for tgram://…, ntfys://…, and so on
    """
    if address and kind != "mail":
        raise click.UsageError("The URL is a secret; leave it out, and it is asked for.")
    address = address or _asked(kind)
    with connect() as client:
        made = client.add_channel(
            name, kind, address, events=list(events) or None, waiting_seconds=waiting or 0, jobs=jobs or "*"
        )
    if made["signingKey"]:
        say("Messages are signed with this key, which is shown only now (Standard Webhooks):")
        click.echo(made["signingKey"])
    say(f"A code is on its way to {made['address']}: corral notifications verify {name} CODE")


def _asked(kind: str) -> str:
    if kind == "mail":
        raise click.UsageError("Name the mail address.")
    if not sys.stdin.isatty():
        return sys.stdin.readline().strip()
    answer: str = click.prompt("URL", hide_input=True, err=True)
    return answer.strip()


@notifications_command.command("verify")
@click.argument("name")
@click.argument("code", default="")
@click.option("--resend", is_flag=True, help="Send another code instead.")
def verify_channel(name: str, code: str, resend: bool) -> None:
    """Verify a channel with the code that it was sent."""
    if resend == bool(code):
        raise click.UsageError("Give the code, or --resend for another one.")
    with connect() as client:
        if resend:
            client.send_channel_code(name)
            say(f"Another code is on its way to {name}; earlier ones are no longer valid.")
            return
        client.verify_channel(name, code)
    say(f"{name} is verified.")


@notifications_command.command("change")
@click.argument("name")
@_preferences
@click.option("--quiet", is_flag=True, help="No events at all, except for jobs whose files ask for them.")
def change_channel(name: str, events: Sequence[str], waiting: int | None, jobs: str | None, quiet: bool) -> None:
    """Change what is told on a channel; --event names all that is told from now on, --waiting 0 ends that."""
    if quiet and events:
        raise click.UsageError("--quiet and --event exclude each other.")
    if not (events or quiet) and waiting is None and jobs is None:
        raise click.UsageError("Say what to change: --event, --quiet, --waiting or --jobs.")
    told = list(events) if events or quiet else None
    with connect() as client:
        client.change_channel(name, events=told, waiting_seconds=waiting, jobs=jobs)
    say(f"{name} is changed.")


@notifications_command.command("test")
@click.argument("name")
def test_channel(name: str) -> None:
    """Send a test message to a verified channel."""
    with connect() as client:
        client.test_channel(name)
    say("A test message is on its way; corral notifications history tells what comes of it.")


@notifications_command.command("remove")
@click.argument("names", nargs=-1, required=True)
def remove_channel(names: Sequence[str]) -> None:
    """Remove channels; what waits to be sent there is dropped."""
    with connect() as client:
        for name in names:
            client.remove_channel(name)
            say(f"{name} is removed.")


@notifications_command.command("history")
@click.option("-n", "--number", default=30, type=click.IntRange(1, 200), show_default=True, help="How many to show.")
@output_option
def history(number: int, output: str) -> None:
    """Show the messages to you, newest first, and why one could not be sent."""
    with connect() as client:
        found = client.notifications(limit=number)["items"]
    if show(found, output, names=[str(each["id"]) for each in found]):
        return
    rows = [
        (age(each["at"]), each["channel"], each["subject"], each["state"], each["tries"], each["error"])
        for each in found
    ]
    click.echo(table(("AGE", "CHANNEL", "MESSAGE", "STATE", "TRIES", "ERROR"), rows, right=frozenset({4})))
