"""The persistent state of a server, in SQLite or PostgreSQL; the only package that speaks SQL."""

from corral.store.backup import restore
from corral.store.database_errors import LeadershipLost, StoreRefused
from corral.store.store import Store, open_store

__all__ = ["LeadershipLost", "Store", "StoreRefused", "open_store", "restore"]
