"""Accounts and sessions of people who sign in with OpenID Connect.

A person is linked to an account by issuer and subject, and keeps it when the name at the provider changes. An equal
name alone never links an existing account, because the server does not control names at the provider. The account must
be reserved for that name, or `link_by_name` must allow it.
"""

from __future__ import annotations

from typing import Final

import structlog

from corral.kernel.errors import Conflict, Forbidden
from corral.model.accounts import Group, User
from corral.model.views import SignedIn
from corral.service.access.rules import Decision, Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.openid import OpenIdSettings, Person
from corral.service.people.authentication import Authentication
from corral.service.people.credentials import digest
from corral.service.people.sessions import Sessions
from corral.service.people.tokens import Tokens

EXPECTED: Final = "name:"
"""Before a user name in place of a subject: an imported account, reserved for the person with that name."""
_RULE: Final = "openid"
log = structlog.get_logger()


class OpenIdSessions:
    """Sign-in and sign-out with OpenID Connect."""

    def __init__(self, context: Context, sessions: Sessions, tokens: Tokens, authentication: Authentication) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock
        self._sessions = sessions
        self._tokens = tokens
        self._authentication = authentication

    async def sign_in(self, person: Person, settings: OpenIdSettings) -> SignedIn:
        """Sign in a person vouched for by the provider; the first sign-in creates or links an account.

        Raises Conflict where the account cannot be theirs, Unauthenticated when it is disabled, Forbidden for a subject
        that looks like a reserved account.
        """
        if person.subject.startswith(EXPECTED):
            raise Forbidden(
                "bad-subject", "The provider's name for you cannot be told from others; ask an administrator."
            )
        user = await self._store.identity(person.issuer, person.subject)
        if user is None or await self._store.user(user) is None:
            user = await self._openid_account(person, settings)
        await self._follow_provider(user, person, settings)
        signed = await self._sessions.sign_in(user, "OpenID Connect", _RULE)
        found = await self._store.find_token(digest(signed.token))
        if found is not None:
            await self._store.add_openid_session(found[0].id, person.issuer, person.session, self._clock.now())
        return signed

    async def has_session(self, actor: Actor) -> bool:
        """Whether the actor's token was issued by an OpenID Connect sign-in."""
        return await self._store.openid_session(actor.token_id) is not None

    async def end(self, issuer: str, subject: str, session: str) -> int:
        """End the tokens of a provider's session, or all of a subject without one; return how many."""
        if session:
            tokens = await self._store.tokens_of_openid_session(issuer, session)
        else:
            tokens = await self._store.tokens_of_identity(issuer, subject)
        for token in tokens:
            await self._tokens.end(token)
        return len(tokens)

    async def expect(self, issuer: str, user: str) -> None:
        """Reserve an account for the first person who signs in with that name."""
        await self._store.link_identity(issuer, EXPECTED + user, user, self._clock.now())

    async def _openid_account(self, person: Person, settings: OpenIdSettings) -> str:
        user = await self._store.user(person.name)
        if user is None:
            await self._make_openid_account(person)
        elif not await self._may_be_theirs(user, person, settings):
            raise Conflict(
                "account-of-another",
                f"There is an account {person.name} already that is not linked with you at the provider; "
                "an administrator can remove it or give you another name there.",
            )
        linked = await self._store.link_identity(person.issuer, person.subject, person.name, self._clock.now())
        await self._context.note(Actor(linked), "user.link", Resource("user", linked), Decision(True, _RULE))
        return linked

    async def _make_openid_account(self, person: Person) -> None:
        if not self._context.several_users and await self._store.count_users() > 0:
            raise Conflict(
                "single-user", "This server takes one user; an administrator starts it as root, or with --trust-users."
            )
        await self._store.add_user(User(person.name, created_at=self._clock.now(), email=person.email))
        resource = Resource("user", person.name)
        await self._context.note(Actor(person.name), "user.create", resource, Decision(True, _RULE), role="user")

    async def _may_be_theirs(self, user: User, person: Person, settings: OpenIdSettings) -> bool:
        """Whether an existing account may be linked to the person who has its name at the provider."""
        others = [subject for _, subject in await self._store.identities(user.name) if not subject.startswith(EXPECTED)]
        if others:
            return False
        if await self._store.identity(person.issuer, EXPECTED + user.name) == user.name:
            return True
        return settings.link_by_name and user.role != "admin" and not user.has_password

    async def _follow_provider(self, name: str, person: Person, settings: OpenIdSettings) -> None:
        """Copy groups and administrator role from the provider; the last administrator keeps the role."""
        user = await self._store.user(name)
        if user is None or person.groups is None:
            return
        said = set(person.groups)
        groups = tuple(sorted(group.name for group in await self._store.groups() if _name_there(group) in said))
        role = user.role
        if settings.admin_groups:
            role = "admin" if said & set(settings.admin_groups) else "user"
        if groups == tuple(sorted(user.groups)) and role == user.role:
            return
        try:
            await self._store.change_user(name, groups=groups, role=role)
        except Conflict as error:
            if error.code != "last-admin":
                raise
            log.warning("the last administrator stays one", user=name)
            await self._store.change_user(name, groups=groups)
        self._authentication.forget(user=name)
        resource = Resource("user", name)
        await self._context.note(
            Actor(name), "user.change", resource, Decision(True, _RULE), role=role, groups=list(groups)
        )


def _name_there(group: Group) -> str:
    """A group's name at the provider: its external name, else its own."""
    return group.external_name or group.name
