"""Create and change many accounts from a CSV file, all or nothing; a dry run reports each line's effect."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from corral.kernel.errors import Conflict, CorralError, InvalidInput
from corral.model.accounts import ADMIN_GROUP, User
from corral.model.views import Batch, BatchLine
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.people.accounts import check_email, check_role, check_user_name
from corral.service.people.authentication import Authentication
from corral.service.people.groups import BUILT_IN
from corral.service.people.sessions import Sessions
from corral.spec.errors import did_you_mean

COLUMNS: Final = ("name", "role", "groups", "email", "disabled")
MOST_LINES: Final = 1000
MOST_BYTES: Final = 256 * 1024
_MOST_GROUPS: Final = 100
_SAID: Final = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


class AccountBatches:
    """Create and change accounts in bulk."""

    def __init__(self, context: Context, authentication: Authentication, sessions: Sessions) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock
        self._authentication = authentication
        self._sessions = sessions

    async def apply(self, actor: Actor, text: bytes, *, dry_run: bool = False, links: bool = False) -> Batch:
        """Create and change the accounts of a CSV file.

        The first line names the columns: `name`, and any of `role`, `groups`, `email` and `disabled`. An empty cell
        leaves the present value. `groups` holds words separated by spaces: all groups of the account, or changes like
        `+a -b`. With `links` each new account gets a sign-in link.

        Raises InvalidInput `bad-csv` for a file that cannot be read, `batch-refused` when a line is refused (not in a
        `dry_run`); Conflict `last-admin`, `accounts-changed`.
        """
        resource = Resource("user")
        decision = await self._context.check(actor, "user.change", resource)
        rows = _rows(text)
        known = {user.name: user for user in await self._store.all_users()}
        groups = BUILT_IN.keys() | {group.name for group in await self._store.groups()}
        lines, users = self._planned(rows, known, groups)
        refused = [line for line in lines if line.action == "refused"]
        if dry_run:
            return Batch(tuple(lines), applied=False)
        if refused:
            said = "; ".join(f"line {line.line}: {line.message}" for line in refused[:5])
            message = f"Nothing was changed: {len(refused)} of {len(lines)} lines are refused. {said}"
            raise InvalidInput("batch-refused", message, lines=[msgspec.to_builtins(line) for line in refused[:100]])
        audits = [
            self._context.line(
                actor,
                f"user.{line.action}",
                Resource("user", line.name),
                decision,
                role=users[line.name].role,
                groups=list(users[line.name].groups),
                disabled=users[line.name].disabled,
                batch=True,
            )
            for line in lines
            if line.action != "unchanged"
        ]
        before = {name: known.get(name) for name in users}
        await self._store.put_accounts(before, users, audits)
        self._authentication.forget_all()
        await self._context.streams.look()
        if links:
            made = (await self._with_link(line) for line in lines)
            lines = [line async for line in made]
        return Batch(tuple(lines), applied=True)

    async def _with_link(self, line: BatchLine) -> BatchLine:
        if line.action != "create":
            return line
        return msgspec.structs.replace(line, link=(await self._sessions.link_for(line.name)).link)

    def _planned(
        self, rows: Iterable[tuple[int, Mapping[str, str]]], known: Mapping[str, User], groups: Iterable[str]
    ) -> tuple[list[BatchLine], dict[str, User]]:
        """Return the outcome of each line, and the new or changed accounts by name."""
        lines: list[BatchLine] = []
        users: dict[str, User] = {}
        seen: dict[str, int] = {}
        room = self._context.several_users or not known
        for number, row in rows:
            name = row["name"]
            try:
                if name in seen:
                    raise InvalidInput("named-twice", f"{name[:100]} is in line {seen[name]} already.")
                seen[name] = number
                user = known.get(name)
                changed = _changed(user or User(name, created_at=self._clock.now()), row, groups)
                if user is None:
                    check_user_name(name)
                    if not room:
                        raise Conflict("single-user", "This server takes one user; start it as root for several.")
                    room = self._context.several_users
            except CorralError as error:
                lines.append(BatchLine(number, name[:126], "refused", message=error.message))
                continue
            said = _said(user, changed)
            action = "create" if user is None else "change" if said else "unchanged"
            lines.append(BatchLine(number, name, action, said))
            if action != "unchanged":
                users[name] = changed
        return lines, users


def _rows(text: bytes) -> list[tuple[int, dict[str, str]]]:
    """Parse the file into rows with their line numbers; a row maps columns to cells.

    Raises InvalidInput `bad-csv`.
    """
    if len(text) > MOST_BYTES:
        raise InvalidInput("bad-csv", f"A list of accounts has at most {MOST_BYTES // 1024} KiB; split it.")
    try:
        reader = csv.reader(io.StringIO(text.decode("utf-8-sig"), newline=""), strict=True)
        found = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput("bad-csv", f"The file is not CSV in UTF-8: {error}.") from None
    found = [(number, row) for number, row in found if any(row)]
    if not found:
        raise InvalidInput("bad-csv", "The file is empty; its first line names the columns, such as name,role,groups.")
    columns = [column.lower() for column in found[0][1]]
    for column in columns:
        if column not in COLUMNS:
            near = did_you_mean(column, COLUMNS) or f"; there are {', '.join(COLUMNS)}."
            raise InvalidInput("bad-csv", f'There is no column "{column[:60]}"{near}')
    if "name" not in columns or len(set(columns)) < len(columns):
        raise InvalidInput("bad-csv", "The first line names each column once, and name is one of them.")
    if len(found) - 1 > MOST_LINES:
        raise InvalidInput("bad-csv", f"A list has at most {MOST_LINES} accounts; split it.")
    rows = []
    for number, row in found[1:]:
        if len(row) > len(columns):
            raise InvalidInput("bad-csv", f"Line {number} has {len(row)} cells for {len(columns)} columns.")
        rows.append((number, dict.fromkeys(COLUMNS, "") | dict(zip(columns, row, strict=False))))
    return rows


def _changed(user: User, row: Mapping[str, str], groups: Iterable[str]) -> User:
    said: dict[str, Any] = {}
    if row["role"]:
        check_role(row["role"])
        said["role"] = row["role"]
    if row["groups"]:
        said["groups"] = _groups(user, row["groups"].replace(";", " ").split(), frozenset(groups))
    if row["email"]:
        check_email(row["email"])
        said["email"] = row["email"]
    if row["disabled"]:
        if row["disabled"].lower() not in _SAID:
            raise InvalidInput("bad-disabled", f"disabled is yes or no, not {row['disabled'][:60]}.")
        said["disabled"] = _SAID[row["disabled"].lower()]
    return msgspec.structs.replace(user, **said)


def _groups(user: User, words: list[str], known: frozenset[str]) -> tuple[str, ...]:
    """Return the account's new groups: the named ones, or its present ones with the changes applied."""
    signed = [word[0] in "+-" for word in words]
    if any(signed) and not all(signed):
        raise InvalidInput("bad-groups", "groups names all groups, or only changes like +a -b; not both.")
    names = [word.lstrip("+-") if signed[0] else word for word in words]
    if len(names) > _MOST_GROUPS:
        raise InvalidInput("bad-groups", f"An account is in {_MOST_GROUPS} groups at most here.")
    for name in names:
        if name == ADMIN_GROUP:
            raise InvalidInput("bad-groups", "Write admin under role instead of the administrators' group.")
        if name not in known:
            near = did_you_mean(name, tuple(known - {ADMIN_GROUP}))
            end = near if near.endswith("?") else "; make it first (corral groups make)."
            raise InvalidInput("unknown-group", f"There is no group {name[:100]}{end}")
    if not signed[0]:
        return tuple(dict.fromkeys(names))
    now = [name for name in user.memberships if name != ADMIN_GROUP or name in user.groups]
    for word, name in zip(words, names, strict=True):
        if word[0] == "-":
            now = [each for each in now if each != name]
        elif name not in now:
            now.append(name)
    return tuple(now)


def _said(before: User | None, after: User) -> tuple[str, ...]:
    """Describe each difference in words."""
    if before is None:
        made = [f"role: {after.role}", f"groups: {' '.join(after.memberships)}"]
        made += ["disabled"] if after.disabled else []
        return tuple(made)
    found = []
    if before.role != after.role:
        found.append(f"role: {before.role} to {after.role}")
    if set(before.memberships) != set(after.memberships) and before.groups != after.groups:
        found.append(f"groups: {' '.join(before.memberships)} to {' '.join(after.memberships)}")
    if before.email != after.email:
        found.append(f"email: {before.email or 'none'} to {after.email}")
    if before.disabled != after.disabled:
        found.append("disabled" if after.disabled else "enabled")
    return tuple(found)
