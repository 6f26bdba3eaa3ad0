"""`corral groups`: manage groups, their members, and the queues and storages that they grant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

import click

from corral.cli.accounts import Listing
from corral.cli.connection import connect
from corral.cli.output import output_option, say, show, table
from corral.cli.priority_options import PRIORITY, max_priority_option

_KINDS: Final[tuple[Literal["queues", "manages", "storages"], ...]] = ("queues", "manages", "storages")


def _grants(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("-s", "--storage", "storages", multiple=True, help="A storage; repeat it; * is all."),
        click.option("-m", "--manage", "manages", multiple=True, help="A queue that the members manage; repeat it."),
        click.option("-q", "--queue", "queues", multiple=True, help="A queue; repeat it; * is all."),
    ):
        function = option(function)
    return function


def _named(queues: Sequence[str], manages: Sequence[str], storages: Sequence[str]) -> dict[str, list[str]]:
    found = {"queues": list(queues), "manages": list(manages), "storages": list(storages)}
    if not any(found.values()):
        raise click.UsageError("Name what is granted or revoked: --queue, --manage or --storage.")
    return found


@click.group("groups", cls=Listing, invoke_without_command=True)
@output_option
@click.pass_context
def groups_command(context: click.Context, output: str) -> None:
    """List groups, with their members and grants.

    Administrators see and change all groups; others see their own.
    """
    if context.invoked_subcommand is not None:
        return
    with connect() as client:
        found = client.groups()["items"]
    if show(found, output, names=[each["name"] for each in found]):
        return
    rows = [(each["name"], each["memberCount"], *(", ".join(each[kind]) for kind in _KINDS)) for each in found]
    click.echo(table(("NAME", "MEMBERS", "QUEUES", "MANAGES", "STORAGES"), rows))


@groups_command.command("show")
@click.argument("name")
@output_option
def show_group(name: str, output: str) -> None:
    """Show one group with its members."""
    with connect() as client:
        found = client.group(name)
    if show(found, output, names=[name]):
        return
    rows: list[tuple[str, str]] = [(kind, ", ".join(found[kind]) or "-") for kind in _KINDS]
    rows.append(("members", ", ".join(found["members"]) or "-"))
    rows.append(("maxPriority", "-" if found["maxPriority"] is None else str(found["maxPriority"])))
    click.echo(table((name, found["description"]), rows))


@groups_command.command("make")
@click.argument("name")
@_grants
@click.option("--description", default="", help="A description of one line.")
@click.option("--max-priority", type=PRIORITY, default=None, help="The highest priority of its members' jobs.")
def make_group(
    name: str,
    queues: Sequence[str],
    manages: Sequence[str],
    storages: Sequence[str],
    description: str,
    max_priority: int | None,
) -> None:
    """Create a group."""
    grant = {"queues": list(queues), "manages": list(manages), "storages": list(storages)}
    with connect() as client:
        client.create_group(name, grant=grant, description=description, max_priority=max_priority)
    say(f"{name} is a group. Put people into it: corral groups add {name} USER...")


@groups_command.command("change")
@click.argument("name")
@click.option("--description", default=None, help="A description of one line.")
@click.option("--external-name", default=None, help="What the sign-in provider calls it.")
@click.option("--admin/--no-admin", default=None, help="Whether its members are administrators.")
@max_priority_option("its members' jobs", "takes the bound away")
def change_group(
    name: str,
    description: str | None,
    external_name: str | None,
    admin: bool | None,
    max_priority: int | Literal[""] | None,
) -> None:
    """Change a group's description, external name, administration and highest priority."""
    if description is None and external_name is None and admin is None and max_priority is None:
        raise click.UsageError("Say what to change: --description, --external-name, --admin or --max-priority.")
    said: dict[str, Any] = {"description": description, "external_name": external_name, "admin": admin}
    with connect() as client:
        client.change_group(name, **said, max_priority=max_priority)
    say(f"{name} is changed.")


@groups_command.command("rm")
@click.argument("name")
def remove_group(name: str) -> None:
    """Delete a group; its members lose the permissions that it granted."""
    with connect() as client:
        client.delete_group(name)
    say(f"{name} is deleted.")


@groups_command.command("add")
@click.argument("name")
@click.argument("users", nargs=-1, required=True, metavar="USER...")
def add_members(name: str, users: Sequence[str]) -> None:
    """Add accounts to a group: all of them or none."""
    with connect() as client:
        client.change_group(name, add=users)
    say(f"{', '.join(users)} {'is' if len(users) == 1 else 'are'} in {name}.")


@groups_command.command("remove")
@click.argument("name")
@click.argument("users", nargs=-1, required=True, metavar="USER...")
def remove_members(name: str, users: Sequence[str]) -> None:
    """Remove accounts from a group: all of them or none."""
    with connect() as client:
        client.change_group(name, remove=users)
    say(f"{', '.join(users)} {'is' if len(users) == 1 else 'are'} no more in {name}.")


@groups_command.command("grant")
@click.argument("name")
@_grants
def grant_to_group(name: str, queues: Sequence[str], manages: Sequence[str], storages: Sequence[str]) -> None:
    """Grant queues and storages to a group, or let its members manage queues.

    \b
    corral groups grant vision --queue vision --storage imagenet
    corral groups grant vision-leads --manage vision
    """
    grant = _named(queues, manages, storages)
    with connect() as client:
        client.change_group(name, grant=grant)
    say(f"{name} is changed.")


@groups_command.command("revoke")
@click.argument("name")
@_grants
def revoke_from_group(name: str, queues: Sequence[str], manages: Sequence[str], storages: Sequence[str]) -> None:
    """Revoke queues and storages from a group."""
    revoke = _named(queues, manages, storages)
    with connect() as client:
        client.change_group(name, revoke=revoke)
    say(f"{name} is changed.")
