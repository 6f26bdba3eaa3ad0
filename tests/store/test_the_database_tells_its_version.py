"""The store tells which database it is in, and that database's version."""

from __future__ import annotations

import re

from corral.store.store import Store


async def test_each_database_tells_product_and_version(store: Store) -> None:
    assert store.database_name == {"sqlite": "SQLite", "postgresql": "PostgreSQL"}[store.dialect]
    assert re.match(r"\d+\.\d+", await store.database_version())
