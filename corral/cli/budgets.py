"""`corral budget`: how much queues and users may use in a day, a week or a month."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from corral.cli.accounts import Listing
from corral.cli.connection import connect
from corral.cli.output import output_option, say, show, table

_KINDS: Final = ("queue", "user")
_WINDOWS: Final = ("day", "week", "month")
_WHEN_USED_UP: Final = ("warn", "hold")


def _which(function: Callable[..., Any]) -> Callable[..., Any]:
    """The arguments that name a budget."""
    for argument in (
        click.argument("window", type=click.Choice(_WINDOWS)),
        click.argument("name"),
        click.argument("kind", type=click.Choice(_KINDS)),
    ):
        function = argument(function)
    return function


@click.group("budget", cls=Listing, invoke_without_command=True)
@output_option
@click.pass_context
def budget_command(context: click.Context, output: str) -> None:
    """List the budgets of queues and users, and change them (for administrators).

    USED is what attempts have held since the window began. PROMISED is what live jobs may still hold in it, by their
    maxDuration. Windows are in UTC, and weeks begin on Monday.

    \b
    corral budget
    corral budget set queue research week 500
    corral budget set user ann month 200 --when-used-up hold
    corral budget top-up queue research week 100 --reason "deadline of the paper"
    """
    if context.invoked_subcommand is not None:
        return
    with connect() as client:
        found = client.budgets()
    if show(found, output, names=[f"{each['kind']}/{each['name']}/{each['window']}" for each in found["items"]]):
        return
    if not found["items"]:
        say("There are no budgets.")
        return
    amounts = ("allowed", "used", "promised", "left")
    rows = [
        (
            f"{each['kind']} {each['name']}",
            each["window"],
            *(f"{each[one]:.1f}" for one in amounts),  # type: ignore[literal-required]
            each["state"],
            each["whenUsedUp"],
        )
        for each in found["items"]
    ]
    titles = ("BUDGET", "WINDOW", "ALLOWED", "USED", "PROMISED", "LEFT", "STATE", "WHEN USED UP")
    click.echo(table(titles, rows, right=frozenset(range(2, 6))))


@budget_command.command("set")
@_which
@click.argument("device_hours", type=float, metavar="DEVICE-HOURS")
@click.option(
    "--warn-at", type=float, default=0.8, show_default=True, help="The part from which submissions are warned."
)
@click.option(
    "--when-used-up",
    type=click.Choice(_WHEN_USED_UP),
    default="warn",
    show_default=True,
    help="Let jobs that run by then run on and warn their owners, or hold them until it allows more.",
)
def set_budget(kind: str, name: str, window: str, device_hours: float, warn_at: float, when_used_up: str) -> None:
    """Set the device-hours of a queue or user in each day, week or month."""
    with connect() as client:
        found = client.set_budget(kind, name, window, device_hours, warn_at=warn_at, when_used_up=when_used_up)
    say(f"The budget of {kind} {name} is {device_hours:g} device-hours a {window}; {found['left']:g} are left.")


@budget_command.command("top-up")
@_which
@click.argument("device_hours", type=float, metavar="DEVICE-HOURS")
@click.option("--reason", required=True, help="The reason, for the audit log.")
def top_up_budget(kind: str, name: str, window: str, device_hours: float, reason: str) -> None:
    """Add device-hours to a budget until its present window ends."""
    with connect() as client:
        found = client.top_up_budget(kind, name, window, device_hours, reason=reason)
    say(f"{found['left']:g} of {found['allowed']:g} device-hours are left until {found['end']}.")


@budget_command.command("remove")
@_which
def remove_budget(kind: str, name: str, window: str) -> None:
    """Remove a budget, with what was added to it."""
    with connect() as client:
        client.remove_budget(kind, name, window)
    say(f"The budget of {kind} {name} for a {window} is removed.")
