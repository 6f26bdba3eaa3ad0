"""Password hashes that cost next to nothing, for tests that run the service in their own process.

A hash of the product takes 64 MiB and a third of a second; `tests/service/test_passwords.py` tests that cost once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from argon2 import PasswordHasher, extract_parameters

from corral.service.people import credentials

HASHER: Final = credentials._HASHER
NOBODY: Final = credentials._NOBODY
"""The product's own, as they were before any test."""
_CHEAP: Final = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@contextmanager
def cheap_passwords() -> Iterator[None]:
    """Hash with the least cost that argon2id allows, also the hash that unknown users are checked against."""
    head = "$argon2id$v=19$m={0.memory_cost},t={0.time_cost},p={0.parallelism}$"
    nobody = NOBODY.replace(head.format(extract_parameters(NOBODY)), head.format(_CHEAP))
    assert nobody != NOBODY
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(credentials, "_HASHER", _CHEAP)
        patch.setattr(credentials, "_NOBODY", nobody)
        yield
