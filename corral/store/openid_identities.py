"""Link accounts to OpenID providers by the subject that never changes there, and tokens to provider sessions.

When a provider's session ends, its tokens can be found and revoked.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete, insert, select

from corral.store import tables
from corral.store.database import Database, rows
from corral.store.rows import put
from corral.store.writer import Transaction

_identities, _sessions = tables.openid_identities, tables.openid_sessions


class Identities(Database):
    """The accounts of OpenID subjects, and the provider sessions of tokens."""

    async def identity(self, issuer: str, subject: str) -> str | None:
        """The account linked to a provider's subject; None when there is none."""
        query = select(_identities.c.user).where(_identities.c.issuer == issuer, _identities.c.subject == subject)
        found = await self.read(lambda connection: connection.execute(query).scalar())
        return None if found is None else str(found)

    async def link_identity(self, issuer: str, subject: str, user: str, at: float) -> str:
        """Link a provider's subject to an account and return the account; an existing link stays."""
        row = {"issuer": issuer, "subject": subject, "user": user, "at": at}

        def run(transaction: Transaction) -> str:
            query = select(_identities.c.user).where(_identities.c.issuer == issuer, _identities.c.subject == subject)
            known = transaction.read(query).scalar()
            if known is None:
                put(transaction, _identities, [row])
            return user if known is None else str(known)

        return await self.write(run)

    async def identities(self, user: str) -> list[tuple[str, str]]:
        """Every provider and subject linked to an account."""
        query = select(_identities.c.issuer, _identities.c.subject).where(_identities.c.user == user)
        return [(row.issuer, row.subject) for row in await self.read(lambda connection: rows(connection, query))]

    async def add_openid_session(self, token: str, issuer: str, session: str, at: float) -> None:
        """Record the provider session in which a token began, and delete the records of tokens that no longer exist."""
        row = {"token": token, "issuer": issuer, "session": session, "at": at}

        def run(transaction: Transaction) -> None:
            transaction.write(delete(_sessions).where(_sessions.c.token.not_in(select(tables.tokens.c.id))))
            transaction.write(insert(_sessions), row)

        await self.write(run)

    async def openid_session(self, token: str) -> tuple[str, str] | None:
        """The provider and the session in which a token began; None when there is none."""
        query = select(_sessions.c.issuer, _sessions.c.session).where(_sessions.c.token == token)
        row: Any = await self.read(lambda connection: connection.execute(query).first())
        return None if row is None else (row.issuer, row.session)

    async def tokens_of_openid_session(self, issuer: str, session: str) -> list[str]:
        """The ids of the tokens that began in a session of the provider."""
        query = select(_sessions.c.token).where(_sessions.c.issuer == issuer, _sessions.c.session == session)
        return [str(row.token) for row in await self.read(lambda connection: rows(connection, query))]

    async def tokens_of_identity(self, issuer: str, subject: str) -> list[str]:
        """The ids of the tokens that a provider's subject began in any of its sessions."""
        query = (
            select(_sessions.c.token)
            .join(tables.tokens, tables.tokens.c.id == _sessions.c.token)
            .join(_identities, _identities.c.user == tables.tokens.c.user)
            .where(_sessions.c.issuer == issuer, _identities.c.issuer == issuer, _identities.c.subject == subject)
        )
        return [str(row.token) for row in await self.read(lambda connection: rows(connection, query))]
