"""Import groups, accounts, tokens and jobs of an OpenPAI cluster; an import can be repeated without harm.

Existing groups and accounts may have been changed since. A difference is reported, and applied only with `replace`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import msgspec

from corral.compat.openpai.records.cluster_import import (
    Imported,
    ImportedPage,
    ImportGroup,
    ImportJob,
    ImportToken,
    ImportUser,
    OpenPaiImport,
)
from corral.compat.openpai.service.imported_tokens import (
    SHORTEST,
    WELL_KNOWN,
    ImportedSecret,
    ImportedTokens,
    unverified,
    verified,
)
from corral.compat.openpai.service.password_hash import PREFIX
from corral.compat.openpai.tables.job_lists import OpenPaiLists
from corral.kernel.errors import CorralError, InvalidInput
from corral.model.accounts import ADMIN_GROUP, Group, User
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.jobs.submission import Submission
from corral.service.people.accounts import check_user_name
from corral.service.people.authentication import Authentication
from corral.service.people.credentials import digest
from corral.service.people.openid_sessions import OpenIdSessions
from corral.service.people.token_kinds import APPLICATION
from corral.spec.job_reader import read_job
from corral.workers.pool import INLINE_BYTES

_MASKED: Final = "******"


class ClusterImport:
    """Import the data of an OpenPAI cluster."""

    def __init__(
        self,
        context: Context,
        authentication: Authentication,
        imported_tokens: ImportedTokens,
        openid_sessions: OpenIdSessions,
        submission: Submission,
    ) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock
        self._authentication = authentication
        self._imported_tokens = imported_tokens
        self._openid_sessions = openid_sessions
        self._submission = submission

    async def run(
        self, actor: Actor, given: OpenPaiImport, *, dry_run: bool = False, replace: bool = False
    ) -> ImportedPage:
        """Import groups, accounts, tokens and jobs; with `dry_run` only report the outcome for each.

        `replace` changes existing groups and accounts that differ. Refusals of single items are in the answer.
        """
        resource = Resource("cluster", "openpai")
        decision = await self._context.check(actor, "openpai.import", resource)
        done: list[Imported] = []
        for group in given.groups:
            done.append(await self._import_group(group, dry_run, replace))
        for user in given.users:
            if user.name == actor.user:  # changing one's own password needs a fresh sign-in
                user = msgspec.structs.replace(user, password_hash="")
            done.append(await self._import_user(user, given.issuer, dry_run, replace))
        if given.jwt_secret:
            done.append(await self._import_secret(given, dry_run))
        for token in given.tokens:
            done.append(await self._import_token(token, given.jwt_secret, given.coming_users, dry_run))
        for job in given.jobs:
            done.append(await self._import_job(job, given.coming_users, dry_run))
        if not dry_run:
            self._authentication.forget_all()
            counted = {each: sum(one.result == each for one in done) for each in ("created", "changed", "refused")}
            await self._store.add_audit(self._context.line(actor, "openpai.import", resource, decision, **counted))
        return ImportedPage(tuple(done))

    async def _import_group(self, given: ImportGroup, dry_run: bool, replace: bool) -> Imported:
        group = Group(
            given.name,
            given.queues,
            given.storages,
            admin=given.admin,
            description=given.description,
            external_name=given.external_name,
            extension=given.extension,
        )
        known = {each.name: each for each in await self._store.groups()}.get(given.name)
        if known is not None:
            group = msgspec.structs.replace(group, manages=known.manages, max_priority=known.max_priority)
        differs = _differences(known, group) if known else ""
        if known is not None and not differs:
            return Imported("group", given.name, "unchanged")
        if known is not None and not replace:
            return Imported("group", given.name, "kept", f"It is here already, with {differs}.")
        if not dry_run:
            await self._store.put_group(group)
        return Imported("group", given.name, "changed" if known else "created")

    async def _import_user(self, given: ImportUser, issuer: str, dry_run: bool, replace: bool) -> Imported:
        try:
            check_user_name(given.name)
        except InvalidInput as error:
            return Imported("user", given.name, "refused", error.message)
        role = "admin" if given.admin else "user"
        groups = tuple(sorted({each for each in given.groups if each != ADMIN_GROUP}))
        user = User(
            given.name, role, groups, created_at=self._clock.now(), email=given.email, extension=given.extension
        )
        stored = PREFIX + given.password_hash if given.password_hash else ""
        known = await self._store.user(given.name)
        if known is None:
            if not self._context.several_users and await self._store.count_users() > 0:
                return Imported(
                    "user", given.name, "refused", "This server takes one user; start it with --trust-users."
                )
            if not dry_run:
                await self._store.add_user(user, stored)
                await self._imported_tokens.mark_account(given.name)
            if issuer and not dry_run:
                await self._openid_sessions.expect(issuer, given.name)
            return Imported("user", given.name, "created", _how_they_enter(stored, issuer))
        return await self._again(known, user, stored, dry_run, replace)

    async def _again(self, known: User, user: User, stored: str, dry_run: bool, replace: bool) -> Imported:
        """Import an account that exists already."""
        differs = _differences(known, user)
        fits = stored if stored and not known.has_password else ""
        if not differs and not fits:
            return Imported("user", user.name, "unchanged")
        if differs and not replace:
            return Imported("user", user.name, "kept", f"It is here already, with {differs}.")
        if not dry_run:
            await self._store.change_user(
                user.name,
                role=user.role if replace else None,
                groups=user.groups if replace else None,
                email=user.email if replace else None,
                extension=user.extension if replace else None,
                password_hash=fits or None,
                at=self._clock.now(),
                kept_kinds=(APPLICATION,),
            )
        return Imported("user", user.name, "changed")

    async def _import_secret(self, given: OpenPaiImport, dry_run: bool) -> Imported:
        secret = ImportedSecret(given.jwt_secret, given.tokens_listed)
        if secret.secret in WELL_KNOWN or len(secret.secret) < SHORTEST:
            return Imported(
                "secret", "jwt-secret", "refused", "Everybody could sign with it: it is known, or too short."
            )
        known = await self._imported_tokens.secret()
        if known is not None and known.at and msgspec.structs.replace(known, at=0.0) == secret:
            return Imported("secret", "jwt-secret", "unchanged")
        if not dry_run:
            await self._imported_tokens.put_secret(secret)
        return Imported("secret", "jwt-secret", "changed" if known else "created")

    async def _import_token(self, given: ImportToken, secret: str, coming: Sequence[str], dry_run: bool) -> Imported:
        name = f"{given.user}/{digest(given.token)[:8]}"
        claims = verified(given.token, secret) if secret else unverified(given.token)
        if claims is None or claims.get("username") != given.user:
            return Imported("token", name, "refused", "The cluster did not sign it.")
        if claims.get("application") is not True or claims.get("jobSpecific"):
            return Imported("token", name, "left", "It is not an application's; people sign in again.")
        if await self._store.find_token(digest(given.token)) is not None:
            return Imported("token", name, "unchanged")
        if await self._store.user(given.user) is None and not (dry_run and given.user in coming):
            return Imported("token", name, "refused", f"There is no account {given.user}.")
        if not dry_run and not await self._imported_tokens.keep(given.token, claims):
            return Imported("token", name, "refused", "It ends by itself, which application tokens do not.")
        return Imported("token", name, "created")

    async def _import_job(self, given: ImportJob, coming: Sequence[str], dry_run: bool) -> Imported:
        name = f"{given.user}~{given.name}"
        if _MASKED in given.text:
            why = "Its secrets are masked in the export; write them into the file and submit it again."
            return Imported("job", name, "refused", why)
        filename = f"{name}.yaml"
        try:
            if dry_run and given.user in coming:  # its account and groups may be part of this import
                await self._context.run_in_worker(
                    len(given.text) <= INLINE_BYTES, partial(read_job, given.text, filename=filename)
                )
                return Imported("job", name, "created")
            if await self._has_job(given):
                return Imported("job", name, "unchanged")
            owner, here = await self._authentication.account(given.user), await self._store.admission()
            await self._submission.submit(
                owner,
                given.text,
                filename=filename,
                dry_run=dry_run,
                no_image=not here.container_runtime,
                unique_name="ever",
                own_priority=True,
                file=True,
            )
        except CorralError as error:
            if error.status >= 500:
                raise
            return Imported("job", name, "refused", error.message.splitlines()[0])
        return Imported("job", name, "created")

    async def _has_job(self, given: ImportJob) -> bool:
        """Whether the user has a job of that name, in any state."""
        return await OpenPaiLists(self._store).find(given.user, given.name) is not None


def _differences(known: User | Group, other: User | Group) -> str:
    """Name the fields in which two accounts or groups differ; "" if none."""
    fields: tuple[str, ...] = ("role", "groups", "email", "extension")
    if isinstance(known, Group):
        fields = ("queues", "storages", "admin", "description", "external_name", "extension")
    differ = [each for each in fields if _comparable(known, each) != _comparable(other, each)]
    return f"other {' and '.join(each.replace('_', ' ') for each in differ)}" if differ else ""


def _comparable(thing: User | Group, field: str) -> Any:
    value = getattr(thing, field)
    return sorted(value) if isinstance(value, tuple) else value


def _how_they_enter(stored: str, issuer: str) -> str:
    if stored:
        return "The password stays the same."
    return (
        "They sign in at the provider." if issuer else "No password came along: corral users link makes a sign-in link."
    )
