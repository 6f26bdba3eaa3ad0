"""Let each user have one question answered at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from corral.kernel.errors import Unavailable


class OneEach:
    """The places of users, one for each."""

    def __init__(self, taken: Callable[[], Unavailable]) -> None:
        """`taken` makes the error for a user whose place is taken."""
        self._taken = taken
        self._users: set[str] = set()

    @contextlib.contextmanager
    def place(self, user: str) -> Iterator[None]:
        """Hold the place of a user; raises the error of `taken`."""
        if user in self._users:
            raise self._taken()
        self._users.add(user)
        try:
            yield
        finally:
            self._users.discard(user)
