"""Count wrong passwords per account and per address, for every route that checks a password."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from starlette.requests import HTTPConnection

from corral.api.client_addresses import address_key
from corral.api.rate_limits import FailureLimit
from corral.kernel.errors import CorralError


@contextlib.asynccontextmanager
async def counted_attempt(connection: HTTPConnection, user: str, *codes: str) -> AsyncIterator[None]:
    """Check a password, or a sign-in link ("" as the user), in the block; count 401 and `codes` as wrong guesses.

    Raises TooManyRequests when the account or the address has used up its failures.
    """
    limit: FailureLimit = connection.app.state.login_limit
    keys = [address_key(connection), *([f"user:{user}"] if user else [])]
    async with limit.attempt(*keys) as attempt:
        try:
            yield
        except CorralError as error:
            if error.status != 401 and error.code not in codes:
                attempt.void()
            raise
        attempt.right()
