"""The only room that speaks SQL: one durable truth in SQLite or PostgreSQL."""

from corral.store.backup import restore
from corral.store.faults import LeadershipLost, StoreRefused
from corral.store.store import Store, open_store

__all__ = ["LeadershipLost", "Store", "StoreRefused", "open_store", "restore"]
