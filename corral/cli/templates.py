"""`corral templates`: job files that people share, as on the portal's page of templates."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from corral.cli.accounts import Listing
from corral.cli.connection import connect
from corral.cli.output import output_option, say, show, table
from corral.kernel.errors import InvalidInput

if TYPE_CHECKING:
    from corral.client.schema import TemplateView
    from corral.client.sync import Client

_KINDS: Final = ("job", "dockerimage", "script", "data", "output")
_WHOSE: Final = ("mine", "groups", "everybody")
_LONGEST_SHOWN: Final = 60
_version = click.option("--version", default="", metavar="VERSION", help="An earlier version; default: the latest.")


@click.group("templates", cls=Listing, invoke_without_command=True)
@click.option("--search", default="", metavar="WORDS", help="Only those that contain all these words.")
@click.option("--kind", type=click.Choice(_KINDS), default=None, help="Only templates of this kind.")
@click.option("--whose", type=click.Choice(_WHOSE), default=None, help="Only yours, your groups', or everybody's.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="The most templates to list.")
@output_option
@click.pass_context
def templates_command(
    context: click.Context, search: str, kind: str | None, whose: str | None, limit: int, output: str
) -> None:
    """List the templates that people share, show one, and share yours.

    A TEMPLATE is named by its name, or as KIND/NAME where it is no job.

    \b
    corral templates --search resnet
    corral templates file resnet | corral submit -
    corral templates share job.yaml --about "Train ResNet on four devices" --group vision
    """
    if context.invoked_subcommand is not None:
        return
    with connect() as client:
        found = _listed(client, limit, q=search, kind=kind or "", whose=whose or "")
    if show(found, output, names=[f"{each['type']}/{each['name']}" for each in found]):
        return
    if not found:
        say("There is no such template.")
        return
    click.echo(table(("KIND", "NAME", "OWNER", "FOR", "ABOUT"), [_row(each) for each in found]))


@templates_command.command("show")
@click.argument("template")
@_version
@output_option
def show_template(template: str, version: str, output: str) -> None:
    """Show what a template says of itself, and its versions."""
    with connect() as client:
        found = client.template(*_kind_and_name(template), version=version)
    if show(found, output, names=[template]):
        return
    item = found["item"]
    rows = [("Owner", found["owner"]), ("Changed", found["changedAt"]), ("Version", item["version"])]
    rows += [("Earlier", each) for each in found["versions"] if each != item["version"]]
    rows += [
        (name.capitalize(), _words(item.get(name))) for name in ("description", "contributor", "categories", "tags")
    ]
    click.echo(table(("", ""), [row for row in rows if row[1]]).partition("\n")[2])
    if text := item.get("introduction"):
        click.echo(f"\n{text}")


@templates_command.command("file")
@click.argument("template")
@_version
def print_file(template: str, version: str) -> None:
    """Print the job file of a template."""
    with connect() as client:
        item = client.template(*_kind_and_name(template), version=version)["item"]
    text = _file_of(item)
    if not text:
        raise InvalidInput("no-job-file", f"The template {template} has no job file.")
    click.echo(text, nl=not text.endswith("\n"))


@templates_command.command("share")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--name", default="", metavar="NAME", help="Its name; default: that of the job in the file.")
@click.option("--about", default="", metavar="SENTENCE", help="What it does, in one sentence.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A word by which it is found; repeat it.")
@click.option("--group", "groups", multiple=True, metavar="GROUP", help="Share it with this group alone; repeat it.")
@click.option("--private", is_flag=True, help="Keep it for yourself and administrators.")
@output_option
def share_file(
    file: str, name: str, about: str, tags: Sequence[str], groups: Sequence[str], private: bool, output: str
) -> None:
    """Share a job FILE as a template, for everybody or for groups of yours.

    A template of yours with this name gets a new version, which has what is given now and nothing of the earlier ones.
    """
    if private and groups:
        raise click.UsageError("--private and --group exclude each other; give one of them.")
    text = sys.stdin.read() if file == "-" else Path(file).read_text()
    item = {
        "type": "job",
        "name": name or _name_in(text),
        "description": about,
        "file": text,
        "tags": list(tags),
        "isPublic": not (private or groups),
        "groupList": list(groups),
    }
    with connect() as client:
        shared = client.share_template(item)
    if not show(shared, output, names=[shared["name"]]):
        say(f"Shared as {shared['name']}, version {shared['version'][:12]}.")


@templates_command.command("rm")
@click.argument("templates", nargs=-1, required=True)
def remove_templates(templates: Sequence[str]) -> None:
    """Delete templates of yours, with all their versions."""
    with connect() as client:
        for each in templates:
            client.delete_template(*_kind_and_name(each))
            say(f"The template {each} is deleted.")


def _listed(client: Client, limit: int, **query: str) -> list[TemplateView]:
    found: list[TemplateView] = []
    page = 0
    while len(found) < limit:
        page += 1
        answer = client.templates(**query, page=page)
        found += answer["items"]
        if not answer["items"] or len(found) >= answer["totalCount"]:
            break
    return found[:limit]


def _row(template: TemplateView) -> tuple[str, ...]:
    audience = "everybody" if template["isPublic"] else ", ".join(template["groupList"]) or "its owner"
    about = template["description"] or ""
    about = about if len(about) <= _LONGEST_SHOWN else f"{about[: _LONGEST_SHOWN - 1]}…"
    return template["type"], template["name"], template["owner"], audience, " ".join(about.split())


def _kind_and_name(template: str) -> tuple[str, str]:
    """The kind and the name of a template; a name has no slash."""
    kind, slash, name = template.partition("/")
    return (kind, name) if slash else ("job", template)


def _words(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value or "")


def _file_of(item: dict[str, Any]) -> str:
    """The job file of a template; "" where it has none. One of the first marketplace is the file itself."""
    import yaml

    for text in (item.get("file"), item.get("protocol"), item.get("config")):
        if isinstance(text, str) and text.strip():
            return text
        if isinstance(text, dict):
            return yaml.safe_dump(text, sort_keys=False, allow_unicode=True)
    if item.get("type") != "job" or not ({"taskRoles", "roles"} & item.keys()):
        return ""
    rest = {key: value for key, value in item.items() if key != "version"}
    return yaml.safe_dump(rest, sort_keys=False, allow_unicode=True)


def _name_in(text: str) -> str:
    """The name of the job in a file, whatever language it is written in.

    Raises InvalidInput when the file has none.
    """
    import yaml

    try:
        read = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError):
        read = None
    metadata = read.get("metadata") if isinstance(read, dict) else None
    for place in (read, metadata):
        if isinstance(place, dict) and isinstance(place.get("name"), str):
            return str(place["name"])
    raise InvalidInput("name-missing", "The file has no name of a job; name the template with --name.")
