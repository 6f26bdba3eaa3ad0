"""Commands for sign-in, accounts, API tokens and secrets."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TextIO

import click

from corral.cli.command_group import CommandGroup
from corral.cli.connection import connect
from corral.cli.output import age, fields, output_option, say, show, table
from corral.cli.paging import items
from corral.cli.priority_options import PRIORITY, max_priority_option
from corral.kernel.errors import InvalidInput

if TYPE_CHECKING:
    from corral.client.schema import SignedIn
    from corral.client.sync import Client


@click.command("login")
@click.argument("address", required=False, default="")
@click.option("-u", "--user", default="", help="Sign in with this account's password.")
@click.option("--token", is_flag=True, help="Read a token from standard input instead (it never stands in arguments).")
@click.option("--ca", type=click.Path(exists=True, dir_okay=False), default=None, help="Trust this authority (PEM).")
@click.option("--name", default="", help="Remember the server under this name.")
@click.option("--logout", is_flag=True, help="Revoke and forget the token instead.")
def login_command(address: str, user: str, token: bool, ca: str | None, name: str, logout: bool) -> None:
    """Sign in to a server and remember it.

    ADDRESS is a one-time link, as `corral up` prints it, or a server's URL. Without it, sign in to the current server.

    \b
    corral login 'http://127.0.0.1:8470/sign-in#link=TOKEN'
    corral login https://corral.example.org --user alice
    """
    from corral.client import config
    from corral.client.sync import Client

    url, _, fragment = address.partition("/sign-in#link=")
    here = config.current()
    url = (url or here.url).rstrip("/")
    authority = ca or (here.ca if config.same_server(url, here.url) else "")
    if logout:
        with Client(url, here.token, ca=authority) as client:
            client.logout()
        config.forget(url)
        say(f"Signed out of {url}.")
        return
    secret = sys.stdin.readline().strip() if token else ""
    with Client(url, secret, ca=authority) as client:
        if token:
            who = client.me()["user"]
        else:
            signed = client.login(link=fragment) if fragment else _by_password(client, user)
            secret, who = signed["token"], signed["user"]
    config.remember(config.Context(url, secret, who, authority), name)
    say(f"Signed in to {url} as {who}.")


def _by_password(client: Client, user: str) -> SignedIn:
    user = user or click.prompt("User", err=True)
    password = click.prompt("Password", hide_input=True, err=True)
    return client.login(user=user, password=password)


class Listing(CommandGroup):
    """A command group that lists when no subcommand is given; `list` and `ls` do the same, because people try them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Drop `list` or `ls`, which is the default."""
        return super().parse_args(ctx, args[1:] if args[:1] in (["list"], ["ls"]) else args)


@click.group("users", cls=Listing, invoke_without_command=True)
@output_option
@click.pass_context
def users_command(context: click.Context, output: str) -> None:
    """List, create and change accounts (for administrators), and show the use of yours."""
    if context.invoked_subcommand is not None:
        return
    with connect() as client:
        found = items(client.users)
    if show(found, output, names=[user["name"] for user in found]):
        return
    rows = [
        (
            user["name"],
            user["role"],
            ", ".join(user["groups"]),
            "" if user["uid"] is None else user["uid"],
            _notes_of(user),
            age(user["createdAt"]),
        )
        for user in found
    ]
    click.echo(table(("NAME", "ROLE", "GROUPS", "UID", "", "AGE"), rows))


def _notes_of(user: Mapping[str, Any]) -> str:
    notes = ["locked"] if user["disabled"] else []
    if user.get("folder", user["name"]) != user["name"]:
        notes.append(f"folder {user['folder']}")
    if user.get("maxPriority") is not None:
        notes.append(f"maxPriority {user['maxPriority']}")
    return ", ".join(notes)


@users_command.command("add")
@click.argument("name")
@click.option("--admin", is_flag=True, help="An administrator's account.")
@click.option("-g", "--group", "groups", multiple=True, help="A group it is in; repeat it.")
@click.option("--password", is_flag=True, help="Ask for a password (else it is opened by the link that is printed).")
@click.option("--email", default="", metavar="ADDRESS", help="Where its mail goes.")
@click.option("--max-priority", type=PRIORITY, default=None, help="The highest priority of its jobs.")
def add_user(
    name: str, admin: bool, groups: Sequence[str], password: bool, email: str, max_priority: int | None
) -> None:
    """Create an account, and print its one-time sign-in link."""
    chosen = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True) if password else None
    with connect() as client:
        role = "admin" if admin else "user"
        client.create_user(name, role=role, groups=groups, password=chosen, email=email, max_priority=max_priority)
        say(f"{name} has an account.")
        if not password:
            click.echo(f"{client.url}/sign-in#link={client.login_link(name)['link']}")


@users_command.command("change")
@click.argument("name")
@click.option("--role", type=click.Choice(("admin", "user")), default=None, help="The account's new role.")
@click.option("-g", "--group", "groups", multiple=True, help="All groups it is in from now on; repeat it.")
@click.option("--password", is_flag=True, help="Ask for a new password; sign-ins and API tokens end.")
@click.option("--keep-tokens", is_flag=True, help="With --password: API tokens stay valid.")
@click.option("--lock/--unlock", default=None, help="Refuse its sign-ins, or allow them.")
@click.option("--email", default=None, metavar="ADDRESS", help='Where its mail goes; "" is nowhere.')
@max_priority_option("its jobs", "leaves it to its groups")
def change_user(
    name: str,
    role: str | None,
    groups: Sequence[str],
    password: bool,
    keep_tokens: bool,
    lock: bool | None,
    email: str | None,
    max_priority: int | Literal[""] | None,
) -> None:
    """Change an account.

    Every user may change their own password. It asks for the old one, which may be left empty right after `corral
    login`.
    """
    if keep_tokens and not password:
        raise click.UsageError("--keep-tokens is for --password; nothing else ends API tokens.")
    if not (role or groups or password) and lock is max_priority is email is None:
        raise click.UsageError(
            "Say what to change: --role, --group, --password, --lock, --unlock, --email or --max-priority."
        )
    with connect() as client:
        own = password and client.me()["user"] == name
        old = _hidden("Old password", default="", show_default=False) if own else ""
        chosen = _hidden("Password", confirmation_prompt=True) if password else None
        changed = client.change_user(
            name,
            role=role,
            groups=groups or None,
            password=chosen,
            old_password=old,
            keep_tokens=keep_tokens,
            disabled=lock,
            email=email,
            max_priority=max_priority,
        )
    said = [f"{name} is changed.", changed.get("notice", ""), "Sign in again: corral login" if own else ""]
    say(" ".join(filter(None, said)))


def _hidden(text: str, **how: Any) -> str:
    answer: str = click.prompt(text, hide_input=True, err=True, **how)
    return answer


@users_command.command("import")
@click.argument("file", type=click.File("r", encoding="utf-8-sig"))
@click.option("--dry-run", is_flag=True, help="Only show what each line would do.")
@click.option("--links", is_flag=True, help="Print a one-time sign-in link for each new account.")
@output_option
def import_users(file: TextIO, dry_run: bool, links: bool, output: str) -> None:
    """Create and change the accounts of a CSV file: all of them or none.

    Its first line names the columns: name, and any of role, groups, email and disabled. An empty cell keeps the present
    value. Groups are separated by spaces; "+vision -interns" adds one and removes another.

    \b
    corral users import team.csv --dry-run
    """
    with connect() as client:
        found = client.batch_users(file.read(), dry_run=dry_run, links=links)
        address = client.url
    lines = found["lines"]
    if not show(found, output, names=[line["name"] for line in lines]):
        rows = [
            (line["line"], line["name"], line["action"], line["message"] or ", ".join(line["changes"]))
            for line in lines
        ]
        click.echo(table(("LINE", "NAME", "", "WHAT"), rows, right=frozenset({0})))
        for line in lines:
            if line["link"]:
                click.echo(f"{line['name']} {address}/sign-in#link={line['link']}")
    refused = sum(line["action"] == "refused" for line in lines)
    if refused:
        raise click.ClickException(f"{refused} of {len(lines)} lines are refused; nothing would be changed.")
    say("Nothing was changed: this was a dry run." if dry_run else "All changes were made.")


@users_command.command("use")
@click.argument("name", default="")
@output_option
def use_of_user(name: str, output: str) -> None:
    """Show how much of its limits an account uses; default: your own account."""
    with connect() as client:
        account = name or client.me()["user"]
        found = client.use_of_user(account)
    if show(found, output, names=[account]):
        return
    click.echo(table(("what", "used", "limit"), _use_rows(found)))


def _use_rows(found: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    def row(what: str, amount: Mapping[str, int], said: Callable[[int], str]) -> tuple[str, str, str]:
        return what, said(amount["used"]), said(amount["limit"]) if amount["limit"] else "none"

    def each(what: str, limit: int) -> tuple[str, str, str]:
        return what, "", _size(limit) if limit else "none"

    return [
        row("waiting and running tasks", found["tasks"], "{:,}".format),
        row("submissions in an hour", found["submissions"], "{:,}".format),
        row("code kept", found["codeBytes"], _size),
        each("a stream of a task's log", found["logBytesOfStream"]),
        each("a task's working folder", found["folderBytesOfTask"]),
        ("folder on storages", found.get("folder", ""), ""),
    ]


def _size(count: int) -> str:
    return f"{count / 2**30:,.1f} GiB" if count >= 2**30 else f"{count / 2**20:,.1f} MiB"


@users_command.command("link")
@click.argument("name")
def link_user(name: str) -> None:
    """Print a new one-time sign-in link for an account."""
    with connect() as client:
        click.echo(f"{client.url}/sign-in#link={client.login_link(name)['link']}")


@users_command.command("rm")
@click.argument("name")
def remove_user(name: str) -> None:
    """Delete an account."""
    with connect() as client:
        client.delete_user(name)
    say(f"{name} is removed.")


@click.group("token", cls=Listing, invoke_without_command=True)
@output_option
@click.pass_context
def token_command(context: click.Context, output: str) -> None:
    """List, create and revoke your API tokens."""
    if context.invoked_subcommand is not None:
        return
    with connect() as client:
        found = client.tokens()["items"]
    if show(found, output, names=[token["id"] for token in found]):
        return
    rows = [
        (
            each["id"],
            each["name"],
            each["kind"],
            age(each["createdAt"]),
            each["expiresAt"] or "never",
            age(each["lastUsedAt"]),
        )
        for each in found
    ]
    click.echo(table(("ID", "NAME", "KIND", "AGE", "EXPIRES", "LAST USED"), rows))


@token_command.command("create")
@click.argument("name", required=False, default="")
@click.option(
    "--days",
    type=click.FloatRange(0, 3650, min_open=True),
    default=90.0,
    show_default=True,
    help="How long it is valid.",
)
@output_option
def create_token(name: str, days: float, output: str) -> None:
    """Create an API token for a program; it is shown only once.

    \b
    export CORRAL_TOKEN=$(corral token create ci -o name)
    """
    with connect() as client:
        made = client.create_token(name, days=days)
    if not show(made, output, names=[made["token"]]):
        click.echo(fields({"Token": made["token"], "Id": made["id"], "Expires": made["expiresAt"]}))


@token_command.command("revoke")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
def revoke_token(ids: Sequence[str]) -> None:
    """Revoke tokens: they stop working at once."""
    with connect() as client:
        for each in ids:
            client.revoke_token(each)
            say(f"{each} is revoked.")


@click.group("secret", cls=Listing, invoke_without_command=True)
@output_option
@click.pass_context
def secret_command(context: click.Context, output: str) -> None:
    """List, store and delete your secrets; job files refer to them by name, and no command shows a value."""
    if context.invoked_subcommand is not None:
        return
    with connect() as client:
        found = client.secrets()["items"]
    if not show(found, output, names=[each["name"] for each in found]):
        click.echo("\n".join(each["name"] for each in found) or "No secrets. Seal one: corral secret set NAME")


@secret_command.command("set")
@click.argument("name")
def set_secret(name: str) -> None:
    """Store a secret, encrypted; its value is prompted for, or read from standard input.

    \b
    corral secret set wandb-key < key.txt
    """
    if sys.stdin.isatty():
        value = click.prompt("Value", hide_input=True, err=True)
    else:
        value = sys.stdin.read().removesuffix("\n")
    if not value:
        message = f"Standard input is empty, so {name} was not stored; did the program before the pipe fail?"
        raise InvalidInput("empty-secret", message)
    with connect() as client:
        client.put_secret(name, value)
    say(f"{name} is sealed.")


@secret_command.command("rm")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def remove_secret(names: Sequence[str]) -> None:
    """Delete secrets; jobs that already have them keep them."""
    with connect() as client:
        for name in names:
            client.delete_secret(name)
            say(f"{name} is forgotten.")
