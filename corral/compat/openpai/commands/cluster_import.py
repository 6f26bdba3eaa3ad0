"""`corral openpai import`: import an OpenPAI cluster from a folder of its files, and list everything left out."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from corral.cli.connection import connect
from corral.cli.exit_codes import OK, REFUSED
from corral.cli.output import output_option, paint, show, table
from corral.kernel.errors import CorralError, InvalidInput

if TYPE_CHECKING:
    from corral.client.schema import Imported
    from corral.client.sync import Client
    from corral.compat.openpai.language.cluster_export import Export
    from corral.compat.openpai.language.cluster_import import Site
    from corral.spec.configuration_file import Document

Item = dict[str, str]
_BYTES: Final = 256 * 1024**2
"""Bytes that the files of a folder may have in all."""
_PIECE: Final = 400_000
"""Approximate characters sent in one call."""
_DONE: Final = {"created": ("+", "green"), "changed": ("~", "yellow"), "unchanged": ("=", ""), "kept": ("!", "yellow"),
                "refused": ("✘", "red"), "left": ("·", "")}  # fmt: skip


@click.command("import")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--dry-run", is_flag=True, help="Change nothing; show what would be done with each item.")
@click.option("--replace", is_flag=True, help="Replace items that exist here and differ.")
@click.option("--jobs/--no-jobs", default=True, show_default=True, help="Submit the jobs that had not ended.")
@click.option(
    "--engine",
    metavar="NAME",
    default=None,
    help="The engine whose machines the cluster has; default: the server's.",
)
@output_option
def import_command(folder: Path, dry_run: bool, replace: bool, jobs: bool, engine: str | None, output: str) -> int:
    """Import an OpenPAI cluster from a FOLDER of its files, and report the result of each item.

    Files are recognized by their content: layout.yaml, services-configuration.yaml, HiveD's configuration; Secrets of
    the namespaces pai-user-v2, pai-group and pai-user-token, PersistentVolumes and their claims as kubectl prints them;
    answers of the REST API for users, groups, storages and jobs; and job files named USER~NAME.yaml or USER/NAME.yaml.

    A repeated import changes nothing. Ends with 4 when an item could not be imported.

    \b
    kubectl get secrets -n pai-user-v2 -o json > export/users.json
    kubectl get pv,pvc -A -o json > export/storages.json
    corral openpai import export --dry-run
    """
    from corral.compat.openpai.language.cluster_export import lines, read_export
    from corral.compat.openpai.language.cluster_import import site_of

    export = read_export(_files(folder))
    with connect() as client:
        site = site_of(export, engine=engine or _engine(client))
        chosen = _jobs(export, jobs)
        items = [*_documents(client, site, dry_run=dry_run, replace=replace)]
        items += _people(client, export, site, chosen, dry_run=dry_run, replace=replace)
    items += [_item(note.kind, note.name, "left", note.message) for note in site.notes]
    items += [_item("file", path, "left", why[:1].upper() + why[1:] + ".") for path, why in export.unknown]
    items += list(_left_jobs(export, jobs))
    data = {"dryRun": dry_run, "found": list(lines(export)), "items": items, "settings": site.settings}
    if not show(data, output, names=[f"{each['kind']}/{each['name']}" for each in items]):
        _print(items, site.settings, dry_run=dry_run)
    return REFUSED if any(each["result"] == "refused" for each in items) else OK


def _files(folder: Path) -> dict[str, bytes]:
    """Return the files of the folder that are not hidden, by their relative path."""
    found: dict[str, bytes] = {}
    size = 0
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for name in sorted(names):
            path = Path(place) / name
            if name.startswith(".") or not path.is_file():
                continue
            size += path.stat().st_size
            if size > _BYTES:
                raise InvalidInput(
                    "too-much", f"{folder} has more than {_BYTES // 1024**2} MiB; name a folder of the export."
                )
            found[path.relative_to(folder).as_posix()] = path.read_bytes()
    if not found:
        raise InvalidInput("nothing-to-import", f"There are no files in {folder}.")
    return found


def _engine(client: Client) -> str:
    """Return the engine of the server's nodes."""
    nodes = client.nodes(limit=1)["items"]
    return str(nodes[0]["engine"]) if nodes else "local"


def _documents(client: Client, site: Site, *, dry_run: bool, replace: bool) -> Iterator[Item]:
    """Apply nodes and queues in one call, because they refer to each other, and each storage by itself."""
    from corral.spec.configuration_file import identity
    from corral.spec.storage import StorageDocument

    whole = [each for each in site.documents if not isinstance(each, StorageDocument)]
    alone = [[each] for each in site.documents if isinstance(each, StorageDocument)]
    batches: Sequence[Sequence[Document]] = (whole, *alone)
    for together in batches:
        written = [(*identity(each), _written(each)) for each in together]
        if written:
            yield from _applied(client, written, dry_run=dry_run, replace=replace)


def _applied(
    client: Client, written: Sequence[tuple[str, str, str]], *, dry_run: bool, replace: bool
) -> Iterator[Item]:
    """Apply documents in one call; keep existing ones that differ, unless `replace`."""
    try:
        tried = client.diff(_joined(written))["documents"]
        kept = {(each["kind"], each["name"]) for each in tried if each["action"] == "changed" and not replace}
        rest = [each for each in written if each[:2] not in kept]
        done = client.apply(_joined(rest), note="imported from OpenPAI", dry_run=dry_run)["documents"] if rest else []
    except CorralError as error:
        if error.status >= 500:
            raise
        yield from (_item(kind.lower(), name, "refused", error.message.splitlines()[0]) for kind, name, _ in written)
        return
    for each in done:
        yield _item(each["kind"].lower(), each["name"], each["action"])
    for kind, name in sorted(kept):
        yield _item(kind.lower(), name, "kept", f"It is here already and differs: corral get {kind.lower()}/{name}.")


def _written(document: Any) -> str:
    from corral.spec.configuration_file import identity

    told = document.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return json.dumps({"kind": identity(document)[0], **told}, ensure_ascii=False)


def _joined(written: Sequence[tuple[str, str, str]]) -> str:
    return "\n---\n".join(text for _, _, text in written)


def _jobs(export: Export, wanted: bool) -> list[Item]:
    from corral.compat.openpai.language.cluster_export import finished

    chosen = [job for job in export.jobs if job.user and not finished(job.state)] if wanted else []
    return [{"user": job.user, "name": job.name, "text": job.text} for job in chosen]


def _left_jobs(export: Export, wanted: bool) -> Iterator[Item]:
    from corral.compat.openpai.language.cluster_export import finished

    for job in export.jobs:
        name = f"{job.user}~{job.name}" if job.user else job.name
        if not job.user:
            yield _item("job", name, "refused", "Nobody can tell whose it is; call its file USER~NAME.yaml.")
        elif finished(job.state):
            yield _item("job", name, "left", f"It is over ({job.state.lower()}); corral submit runs its file again.")
        elif not wanted:
            yield _item("job", name, "left", "It was not asked for (--no-jobs).")


def _people(
    client: Client, export: Export, site: Site, jobs: Sequence[Item], *, dry_run: bool, replace: bool
) -> Iterator[Item]:
    """Import groups, accounts, tokens and jobs, in this order, in calls of bounded size."""
    administrators = {group.name for group in export.groups.values() if group.admin}
    groups = [
        {
            "name": group.name,
            "description": group.description,
            "externalName": group.external_name,
            "queues": group.queues,
            "storages": group.storages,
            "admin": group.admin,
            "extension": group.extension,
        }
        for group in export.groups.values()
    ]
    users = [
        {
            "name": user.name,
            "email": user.email,
            "admin": user.admin or bool(administrators & set(user.groups)),
            "groups": user.groups,
            "passwordHash": user.password_hash,
            "extension": user.extension,
        }
        for user in export.users.values()
    ]
    tokens = [{"user": user, "token": token} for user, token in export.tokens]
    always: dict[str, Any] = {"issuer": site.issuer}
    if site.jwt_secret:
        secret = {"jwtSecret": site.jwt_secret, "tokensListed": export.tokens_exported}
        yield from map(_known, client.import_openpai(secret, dry_run=dry_run, replace=replace)["items"])
    parts: Sequence[tuple[str, Sequence[dict[str, Any]]]]
    parts = (("groups", groups), ("users", users), ("tokens", tokens), ("jobs", jobs))
    for kind, things in parts:
        for piece in _pieces(things):
            given = {**always, kind: piece}
            if dry_run and kind in ("tokens", "jobs"):
                given["comingUsers"] = sorted({each["user"] for each in piece} & set(export.users))
            yield from map(_known, client.import_openpai(given, dry_run=dry_run, replace=replace)["items"])


def _pieces(things: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Split items into pieces that fit one call."""
    piece: list[dict[str, Any]] = []
    size = 0
    for each in things:
        length = len(json.dumps(each))
        if piece and size + length > _PIECE:
            yield piece
            piece, size = [], 0
        piece.append(each)
        size += length
    if piece:
        yield piece


def _item(kind: str, name: str, result: str, message: str = "") -> Item:
    return {"kind": kind, "name": name, "result": result, "message": message}


def _known(done: Imported) -> Item:
    return _item(done["kind"], done["name"], done["result"], done["message"])


def _print(items: Sequence[Item], settings: dict[str, str], *, dry_run: bool) -> None:
    rows = []
    for each in items:
        mark, colour = _DONE[each["result"]]
        rows.append((paint(mark, colour), each["result"], each["kind"], each["name"], each["message"]))
    click.echo(table(("", "RESULT", "KIND", "NAME", ""), rows))
    counts = {word: sum(each["result"] == word for each in items) for word in _DONE}
    told = ", ".join(f"{number} {word}" for word, number in counts.items() if number)
    click.echo(f"\n{'It would be' if dry_run else 'Done'}: {told or 'nothing'}.")
    if settings:
        click.echo("\nStart the server with these settings:")
        for name, value in settings.items():
            click.echo(f"  {name}={value}")
