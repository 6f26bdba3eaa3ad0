"""A backup goes to standard output and comes from standard input, as between pods that share no folder."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import pytest

from corral import datafolder, upkeep
from corral.kernel.errors import Conflict
from corral.settings import Settings


def server(folder: Path) -> Settings:
    datafolder.prepare(folder)
    datafolder.make_key(folder)
    return Settings(data_folder=folder, administrator="ada")


async def names(settings: Settings) -> list[str]:
    from corral.store import open_store
    from corral.systemclock import SystemClock

    store = await open_store(settings.store_url, clock=SystemClock(), create=False)
    try:
        return [user.name for user in await store.all_users()]
    finally:
        await store.close()


async def create(settings: Settings) -> None:
    from corral.store import open_store
    from corral.systemclock import SystemClock

    store = await open_store(settings.store_url, clock=SystemClock())
    await store.close()


def test_what_a_stream_took_another_server_is_given(tmp_path: Path) -> None:
    one, other = server(tmp_path / "one"), server(tmp_path / "other")
    asyncio.run(create(one))
    assert upkeep.sign_in_link(one, "https://a.example", first=True).startswith("https://a.example/sign-in#link=")
    stream = io.BytesIO()
    upkeep.backup_to(one, stream)
    upkeep.restore_from(other, io.BytesIO(stream.getvalue()))
    assert asyncio.run(names(other)) == ["ada"]
    with pytest.raises(Conflict, match="not a backup"):
        upkeep.restore_from(server(tmp_path / "third"), io.BytesIO(b"something else"))
