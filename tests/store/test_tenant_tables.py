"""A package of somebody else's declares tables: the store makes, migrates, fills, cleans and backs them up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import msgspec
import pytest
from alembic.operations import Operations
from sqlalchemy import Column, Engine, Integer, MetaData, Table, Text, inspect, text

from corral.kernel.errors import Conflict, InvalidInput
from corral.kernel.plug_ins import plug_ins
from corral.model.accounts import User
from corral.model.store_writes import SubmittedAs
from corral.store import open_store
from corral.store import tenant_tables as seam
from corral.store.backup import restore
from corral.store.connections import parse_url, writer_engine
from corral.store.control_writes import _shown_priorities
from corral.store.database_errors import StoreRefused
from corral.store.job_removal import _deletes
from corral.store.job_writes import _same_name
from corral.store.schema import KNOWN, bring_up
from corral.store.tenant_tables import JobNames, TenantTables
from tests.store.makers import ME, Ticking, batch, new_job

metadata = MetaData()
runs = Table(
    "queuepress_runs",
    metadata,
    Column("job", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("class", Text),
    Column("pages", Integer, nullable=False, server_default="0"),
)
owners = Table("queuepress_owners", metadata, Column("name", Text, primary_key=True), Column("owner", Text))


def _first(op: Operations) -> None:
    op.create_table(
        "queuepress_runs",
        Column("job", Text(), primary_key=True),
        Column("user", Text(), nullable=False),
        Column("name", Text(), nullable=False),
        Column("class", Text()),
    )
    op.create_table("queuepress_owners", Column("name", Text(), primary_key=True), Column("owner", Text()))


def _pages(op: Operations) -> None:
    op.add_column("queuepress_runs", Column("pages", Integer(), nullable=False, server_default="0"))


FIRST = TenantTables(metadata, steps=(_first,), by_job=(runs.c.job,))
NEWEST = TenantTables(
    metadata,
    steps=(_first, _pages),
    by_job=(runs.c.job,),
    by_account=(owners.c.owner,),
    job_names=JobNames(runs, priority=runs.c["class"]),
)
Install = Callable[[TenantTables | None], None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a version of the package, or remove it."""

    def forget() -> None:
        for each in (seam.tenant_tables, _shown_priorities, _deletes, _same_name):
            each.cache_clear()

    own = dict(plug_ins(seam.GROUP))

    def run(declared: TenantTables | None) -> None:
        forget()
        point = EntryPoint("queuepress", f"{__name__}:UNUSED", seam.GROUP)
        monkeypatch.setattr(seam, "plug_ins", lambda _: own if declared is None else {**own, "queuepress": point})
        monkeypatch.setattr(EntryPoint, "load", lambda self: declared if self is point else _load(self))

    _load = EntryPoint.load
    yield run
    monkeypatch.undo()
    forget()


def _engine(url: str) -> Engine:
    engine = writer_engine(parse_url(url))
    if engine.dialect.name == "sqlite":
        Path(str(engine.url.database)).touch()
    return engine


def _state(engine: Engine) -> tuple[set[str], str | None]:
    """The columns of the package's first table, and its steps that were taken."""
    with engine.connect() as connection:
        there = inspect(connection)
        names = {each["name"] for each in there.get_columns("queuepress_runs")} if there.has_table(runs.name) else set()
        found = connection.execute(text("SELECT value FROM settings WHERE key = 'tenant-steps:queuepress'")).scalar()
    return names, found


ALL = {"job", "user", "name", "class", "pages"}


def test_tables_are_made_in_a_new_database(empty_url: str, install: Install) -> None:
    install(NEWEST)
    engine = _engine(empty_url)
    bring_up(engine)
    assert _state(engine) == (ALL, "2")
    engine.dispose()


def test_each_step_is_taken_once_and_in_order(empty_url: str, install: Install) -> None:
    install(None)
    engine = _engine(empty_url)
    bring_up(engine)
    assert _state(engine) == (set(), None)
    install(FIRST)
    bring_up(engine)
    assert _state(engine) == (ALL - {"pages"}, "1")
    install(NEWEST)
    bring_up(engine)
    bring_up(engine)
    assert _state(engine) == (ALL, "2")
    install(FIRST)
    with pytest.raises(
        StoreRefused, match=r"tables of queuepress were made by a newer version \(step 2, this one knows 1\)"
    ):
        bring_up(engine)
    install(None)
    bring_up(engine)
    engine.dispose()


def test_openpais_tables_of_every_earlier_database_are_taken_as_they_are(empty_url: str) -> None:
    engine = _engine(empty_url)
    bring_up(engine, target="0010")
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO openpai_jobs VALUES ('j', 'ann', 'Train_1', 'prod', 2)"))
    bring_up(engine, target=KNOWN[-1], tenant_steps={})
    bring_up(engine)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT * FROM openpai_jobs")).all() == [("j", "ann", "Train_1", "prod", 2)]
        assert connection.execute(text("SELECT count(*) FROM openpai_kept")).scalar() == 0
    engine.dispose()


async def test_a_job_is_found_by_the_tenants_name_and_its_rows_go_with_it(empty_url: str, install: Install) -> None:
    install(NEWEST)
    store = await open_store(empty_url, clock=Ticking())
    said = SubmittedAs("queuepress_runs", "My Run", {"pages": 7})
    made = msgspec.structs.replace(new_job("my-run"), submitted_as=said)
    await store.submit(made)
    found = await store.find_job("My Run", made.user)
    assert found is not None and found.id == made.id
    with pytest.raises(Conflict, match="has a job named My Run already"):
        await store.submit(msgspec.structs.replace(new_job("other"), submitted_as=said))
    query = text("SELECT name, pages FROM queuepress_runs")
    assert await store.read(lambda connection: connection.execute(query).all()) == [("My Run", 7)]
    await store.add_user(User("bob", "user"))
    await store.write(lambda transaction: transaction.write(owners.insert(), {"name": "a", "owner": "bob"}))
    await store.remove_user("bob")
    owner = text("SELECT owner FROM queuepress_owners")
    assert await store.read(lambda connection: connection.execute(owner).scalar()) == ""
    lease = await store.lead(ME)
    assert lease is not None
    await store.commit(batch(lease.epoch, removed_jobs=(made.id,)))
    assert await store.read(lambda connection: connection.execute(query).all()) == []
    await store.close()


def test_a_backup_is_restored_at_the_step_it_was_taken_at(tmp_path: Path, install: Install) -> None:
    def rows(url: str) -> list[Any]:
        engine = writer_engine(parse_url(url))
        with engine.connect() as connection:
            found = [tuple(row) for row in connection.execute(text("SELECT * FROM queuepress_owners"))]
        assert _state(engine) == (ALL, "2")
        engine.dispose()
        return found

    async def keep(url: str, file: Path) -> None:
        store = await open_store(url, clock=Ticking())
        await store.write(lambda transaction: transaction.write(owners.insert(), {"name": "a", "owner": "ann"}))
        await store.backup(file)
        await store.close()

    install(FIRST)
    asyncio.run(keep(f"sqlite:///{tmp_path}/old.db", tmp_path / "kept"))
    install(NEWEST)
    restore(tmp_path / "kept", f"sqlite:///{tmp_path}/new.db")
    assert rows(f"sqlite:///{tmp_path}/new.db") == [("a", "ann")]


def test_tables_that_are_named_like_anothers_are_refused(install: Install) -> None:
    other = MetaData()
    Table("jobs", other, Column("id", Text, primary_key=True))
    install(TenantTables(other, steps=()))
    with pytest.raises(InvalidInput, match="has the table jobs, whose name must begin with queuepress_"):
        seam.tenant_tables()
