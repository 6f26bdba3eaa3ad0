"""Empty stores with their tables made: migrations run once per test process, except in tests of migrations."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from corral.store.connections import parse_url, writer_engine
from corral.store.schema import bring_up


def sqlite_store(folder: Path) -> str:
    """The URL of a store in `folder`: a copy of an empty one, unless it exists already."""
    file = folder / "corral.db"
    if not file.exists():
        file.touch(mode=0o600)
        file.write_bytes(_migrated())
    return f"sqlite:///{file}"


@functools.cache
def _migrated() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "corral.db"
        file.touch()
        migrate(f"sqlite:///{file}")
        return file.read_bytes()


def migrate(url: str) -> None:
    """Make the tables of a store in an empty database."""
    engine = writer_engine(parse_url(url))
    bring_up(engine)
    engine.dispose()
