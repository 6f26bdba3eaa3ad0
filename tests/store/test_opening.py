"""A store that cannot be used safely is refused with one sentence and a remedy, never with a traceback."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, column, event, insert, inspect, select, table, text

from corral.kernel.errors import CorralError, InvalidInput, Unavailable
from corral.model.accounts import User
from corral.store import Store, open_store, tables
from corral.store import connections as connecting
from corral.store.connections import filesystem, parse_url, reader_engine, writer_engine
from corral.store.schema import HEAD, KNOWN, MIGRATIONS, bring_up, version_of
from corral.store.tenant_tables import all_metadata
from tests.databases import sqlite_store
from tests.store.makers import START, Ticking, new_job


async def _code(url: str, **terms: bool) -> str:
    with pytest.raises(CorralError) as refused:
        await open_store(url, clock=Ticking(), **terms)
    assert refused.value.message.count("\n") == 0 and refused.value.message.endswith(".")
    return refused.value.code


def test_the_migrations_lead_to_the_tables(empty_url: str) -> None:
    engine = writer_engine(parse_url(empty_url))
    if engine.dialect.name == "sqlite":
        Path(str(engine.url.database)).touch()
    bring_up(engine, target=KNOWN[0])
    bring_up(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        differences = compare_metadata(context, list(all_metadata()))  # type: ignore[arg-type]  # several are allowed
    assert differences == []
    assert version_of(engine) == HEAD
    bring_up(engine)
    engine.dispose()


def test_tables_made_at_once_are_those_that_all_migrations_leave(tmp_path: Path) -> None:
    made, migrated = (_sqlite_file(tmp_path / name) for name in ("made.db", "migrated.db"))
    bring_up(made)
    bring_up(migrated, target=KNOWN[0])
    bring_up(migrated)
    assert _all_of(made) == _all_of(migrated)


def _sqlite_file(file: Path) -> Engine:
    file.touch()
    return writer_engine(parse_url(f"sqlite:///{file}"))


def _all_of(engine: Engine) -> dict[str, Any]:
    """Columns, keys, indexes and rows of every table, by its name."""
    found: dict[str, Any] = {}
    with engine.connect() as connection:
        schema = inspect(connection)
        for table in sorted(schema.get_table_names()):
            columns = sorted(connection.execute(text(f"PRAGMA table_xinfo({table})")), key=lambda row: str(row[1]))
            query = text("SELECT name, sql FROM sqlite_master WHERE tbl_name = :table AND type IN ('index', 'trigger')")
            found[table] = {
                "columns": [tuple(column)[1:] for column in columns],
                "indexes": sorted((name, _plain(sql)) for name, sql in connection.execute(query, {"table": table})),
                "unique": schema.get_unique_constraints(table),
                "foreign": schema.get_foreign_keys(table),
                "checks": schema.get_check_constraints(table),
                "rows": sorted(map(repr, connection.execute(text(f"SELECT * FROM {table}")).mappings())),
            }
    engine.dispose()
    return found


def _plain(sql: str | None) -> str:
    return " ".join((sql or "").replace('"', "").split())


def test_every_migration_is_known_in_order() -> None:
    script = ScriptDirectory(str(MIGRATIONS))
    assert script.get_heads() == [HEAD]
    assert tuple(reversed([step.revision for step in script.walk_revisions()])) == KNOWN


@pytest.fixture(scope="module")
def copy_of_schema(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Path], None]:
    """Copies SQLite's file of an earlier schema, which goes on from the file of the one before."""
    file = tmp_path_factory.mktemp("schemas") / "corral.db"

    def copy(version: str, target: Path) -> None:
        engine = _sqlite_file(file)
        if KNOWN.index(version_of(engine) or KNOWN[0]) > KNOWN.index(version):
            engine.dispose()
            file.unlink()
            engine = _sqlite_file(file)
        bring_up(engine, target=version)
        engine.dispose()
        shutil.copyfile(file, target)

    return copy


@pytest.mark.parametrize(
    # The first goes through every migration.
    "version",
    [KNOWN[0], *(pytest.param(each, marks=pytest.mark.large) for each in KNOWN[1:-3]), *KNOWN[-3:]],
)
def test_a_store_of_each_earlier_schema_is_brought_up(
    empty_url: str, version: str, copy_of_schema: Callable[[str, Path], None]
) -> None:
    engine = writer_engine(parse_url(empty_url))
    if engine.dialect.name == "sqlite":
        copy_of_schema(version, Path(str(engine.url.database)))
    else:
        bring_up(engine, target=version)
    engine.dispose()
    store = asyncio.run(_opened_and_closed(empty_url))
    assert store.dialect == ("sqlite" if "sqlite" in empty_url else "postgresql")


async def _opened_and_closed(url: str) -> Store:
    store = await open_store(url, clock=Ticking())
    await store.submit(new_job())
    await store.close()
    return store


def _of_schema(url: str, version: str) -> Engine:
    """A database as it was when this migration was the newest."""
    engine = writer_engine(parse_url(url))
    if engine.dialect.name == "sqlite":
        Path(str(engine.url.database)).touch()
    bring_up(engine, target=version)
    return engine


def _add(connection: Connection, table: str, **row: object) -> None:
    columns = ", ".join(f'"{column}"' for column in row)
    connection.execute(text(f"INSERT INTO {table} ({columns}) VALUES ({', '.join(f':{name}' for name in row)})"), row)


def _add_job(connection: Connection, job: str, user: str, *, live: bool, at: float) -> None:
    about = {"queue": "default", "priority": 0, "job_type": "shell", "phase": "waiting" if live else "succeeded"}
    _add(
        connection, "jobs", id=job, user=user, name=job, live=live, created_at=at, revision=0, array_parent="", **about
    )
    summary = {"tasks": {"total": 3, "waiting": 3, "running": 0}}
    _add(connection, "job_runs", job=job, run="{}", summary=json.dumps(summary))


def test_tasks_of_jobs_that_are_not_over_are_counted_when_a_store_is_brought_up(empty_url: str) -> None:
    engine = _of_schema(empty_url, "0013")
    with engine.begin() as connection:
        _add_job(connection, "live", "ann", live=True, at=1.0)
    engine.dispose()

    async def counted() -> int:
        store = await open_store(empty_url, clock=Ticking())
        found = await store.open_tasks("ann")
        await store.close()
        return found

    assert asyncio.run(counted()) == 3


def test_attempts_of_before_count_the_whole_devices_that_they_name_when_a_store_is_brought_up(empty_url: str) -> None:
    engine = writer_engine(parse_url(empty_url))
    bring_up(engine, target="0019")
    names = [str(each["name"]) for each in inspect(engine).get_columns("attempts")]
    old = table("attempts", *map(column, names))
    numbers = {"job_attempt", "index", "task_attempt"}
    with engine.begin() as connection:
        for attempt, devices in (("a", "[0,3]"), ("b", "[]")):
            row: dict[str, object] = {name: 0 if name in numbers else "" for name in names}
            row |= {"id": attempt, "devices": devices, "started_at": START, "ended_at": None, "code": None}
            connection.execute(insert(old), row)
    bring_up(engine)
    with engine.connect() as connection:
        found = connection.execute(select(tables.attempts.c.id, tables.attempts.c.millis)).all()
    assert {row.id: row.millis for row in found} == {"a": 2000, "b": 0}
    engine.dispose()


def test_days_of_removed_jobs_and_what_live_jobs_ask_for_are_kept_when_a_store_is_brought_up(empty_url: str) -> None:
    (step,) = (MIGRATIONS / "versions").glob("*_ledger.py")
    engine = _of_schema(empty_url, KNOWN[KNOWN.index(step.name[:4]) - 1])
    with engine.begin() as connection:
        _add_job(connection, "live", "ann", live=True, at=1.0)
        _add_job(connection, "over", "ann", live=False, at=1.0)
        _add(connection, "job_documents", job="live", doc='{"spec":{"maxDurationSeconds":7200}}')
        connection.execute(text("UPDATE job_runs SET summary = :asked"), {"asked": '{"devices":2.5}'})
        for day, seconds in ((19000, 7.0), (19001, 9.0)):
            sums = {"device_seconds": seconds, "lost_device_seconds": 1.0, "task_seconds": 2.0}
            _add(connection, "usage_days", day=day, user="ann", queue="q", **sums)
    bring_up(engine)
    jobs, days = tables.jobs, tables.usage_days
    with engine.connect() as connection:
        asked = connection.execute(select(jobs.c.id, jobs.c.device_millis, jobs.c.longest_seconds)).all()
        kept = connection.execute(select(days).order_by(days.c.day)).all()
    engine.dispose()
    assert {tuple(row) for row in asked} == {("live", 2500, 7200), ("over", 0, 0)}
    assert [tuple(row) for row in kept] == [
        (19000, "ann", "q", "", 7.0, 1.0, 2.0, *[0.0] * 9),
        (19001, "ann", "q", "", 9.0, 1.0, 2.0, *[0.0] * 9),
    ]


def test_accounts_keep_their_names_as_ids_when_a_store_is_brought_up_and_deleted_ones_do_too(empty_url: str) -> None:
    engine = _of_schema(empty_url, "0014")
    with engine.begin() as connection:
        for name in ("ann", "bob"):
            about = {"role": "user", "groups": "[]", "password_hash": "", "email": "", "extension": "{}"}
            _add(connection, "users", name=name, created_at=5.0, disabled=False, **about)
        for job, user in (("a", "ann"), ("b", "bob"), ("e", "eve")):
            _add_job(connection, job, user, live=False, at=1.0)
        for job in "ae":
            _add(connection, "orphaned_jobs", job=job)
        line = {"seq": 1, "actor": "root", "action": "user.delete", "rule": "admin", "detail": "{}"}
        _add(connection, "audit", at=3.0, resource="user:joe", allowed=True, **line)
    engine.dispose()

    async def found() -> tuple[dict[str, str], list[str]]:
        store = await open_store(empty_url, clock=Ticking())
        for name in ("eve", "joe"):
            await store.add_user(User(name, created_at=9.0))
        ids = {user.name: user.id for user in await store.all_users()}
        query = text("SELECT account FROM orphaned_jobs ORDER BY job")
        of_jobs = await store.read(lambda connection: [row.account for row in connection.execute(query)])
        await store.close()
        return ids, of_jobs

    ids, of_jobs = asyncio.run(found())
    assert ids == {"ann": "ann", "bob": "bob", "eve": "eve-2", "joe": "joe-2"}
    assert of_jobs == ["ann-2", "eve"]


async def test_a_newer_schema_is_refused(store: Store, store_url: str) -> None:
    engine = writer_engine(parse_url(store_url))
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    engine.dispose()
    assert await _code(store_url) == "store-newer"


async def test_a_database_of_another_program_is_left_alone(empty_url: str) -> None:
    engine = writer_engine(parse_url(empty_url))
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE theirs (x INTEGER)")
    assert await _code(empty_url) == "store-not-a-database"
    with engine.connect() as connection:
        connection.exec_driver_sql("SELECT x FROM theirs")
    engine.dispose()


async def test_an_empty_store_is_made_only_when_asked(empty_url: str) -> None:
    assert await _code(empty_url, create=False) in {"store-empty", "store-read-only"}


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "corral.db"
    file.write_bytes(b"hello, this is not a database" * 100)
    assert await _code(str(file)) == "store-not-a-database"
    (tmp_path / "folder.db").mkdir()
    assert await _code(str(tmp_path / "folder.db")) == "store-not-a-database"
    assert await _code(str(tmp_path / "missing" / "corral.db")) == "store-no-folder"


async def test_a_damaged_database_is_refused_or_says_so_when_read(tmp_path: Path) -> None:
    file = tmp_path / "corral.db"
    await _opened_and_closed(str(file))
    content = bytearray(file.read_bytes())
    content[100:8192] = os.urandom(8092)
    file.write_bytes(bytes(content))
    assert await _code(str(file)) == "store-corrupt"


async def test_a_read_only_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:  # a folder's mode does not stop root; a read-only file system does
        monkeypatch.setattr(connecting, "_read_only", lambda folder: True)
    else:
        tmp_path.chmod(0o500)
    assert await _code(str(tmp_path / "corral.db")) == "store-read-only"
    tmp_path.chmod(0o700)


async def test_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "filesystem", lambda folder: "nfs4")
    assert await _code(str(tmp_path / "corral.db")) == "store-on-network-filesystem"


def test_the_file_system_is_the_innermost_mount(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    (tmp_path / "a b").mkdir()
    real = str(tmp_path.resolve())
    mounts.write_text(
        "1 0 8:1 / / rw - ext4 /dev/root rw\n"
        f"2 1 0:40 / {real} rw shared:1 - nfs4 server:/x rw\n"
        f"3 2 0:41 / {real}/a\\040b rw - tmpfs tmpfs rw\n"
    )
    assert filesystem(tmp_path, str(mounts)) == "nfs4"
    assert filesystem(tmp_path / "a b", str(mounts)) == "tmpfs"
    assert filesystem(Path("/"), str(mounts)) == "ext4"
    assert filesystem(Path("/"), str(tmp_path / "missing")) == ""


@pytest.mark.parametrize("url", ["mysql://x/y", "sqlite://", "postgresql+nonsense://[", "://"])
def test_another_kind_of_store_is_refused(url: str) -> None:
    try:
        parsed = parse_url(url)
    except InvalidInput as error:
        assert error.code == "store-url"
    else:
        assert parsed.drivername == "postgresql+psycopg"


async def test_a_full_disk_accepts_nothing_and_the_store_goes_on(tmp_path: Path) -> None:
    """SQLite's own page limit gives the same error as a full disk."""
    store = await open_store(str(tmp_path / "corral.db"), clock=Ticking())
    try:
        await store.submit(new_job())
        pages = await store.write(lambda tx: tx.connection.exec_driver_sql("PRAGMA page_count").scalar_one())
        await store.write(lambda tx: tx.connection.exec_driver_sql(f"PRAGMA max_page_count={pages + 8}").scalar_one())
        accepted = 0
        with pytest.raises(Unavailable) as refused:
            for _ in range(1000):
                await store.submit(new_job())
                accepted += 1
        assert refused.value.code == "storage-full" and refused.value.retry_after > 0
        assert len(await store.load_live()) == accepted + 1
        results = await asyncio.gather(*(store.submit(new_job()) for _ in range(50)), return_exceptions=True)
        accepted += sum(not isinstance(result, BaseException) for result in results)
        assert len(await store.load_live()) == accepted + 1
        # A refusal drops the writing connection, and the limit with it: as if space had been freed.
        await store.submit(new_job())
    finally:
        await store.close()


async def test_a_database_that_another_program_locks_is_unavailable_until_it_lets_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "LOCK_SECONDS", 0.05)
    store = await open_store(str(tmp_path / "corral.db"), clock=Ticking())
    other = sqlite3.connect(tmp_path / "corral.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(CorralError) as refused:
            await store.submit(new_job())
        assert refused.value.code == "store-locked"
        other.execute("ROLLBACK")
        assert (await store.submit(new_job())).created
    finally:
        other.close()
        await store.close()


async def test_a_server_that_starts_waits_longer_for_the_lock_than_one_that_serves(tmp_path: Path) -> None:
    store = await open_store(str(tmp_path / "corral.db"), clock=Ticking(), role="front")
    at_the_start = store.limits.lock_seconds()
    store.begin_to_serve("front")
    assert at_the_start > 50 > 15 > store.limits.lock_seconds()
    await store.close()


def test_a_writer_waits_for_the_other_process_that_recovers_the_log(tmp_path: Path) -> None:
    url = parse_url(f"sqlite:///{tmp_path / 'corral.db'}")
    bring_up(writer_engine(url))
    other = sqlite3.connect(tmp_path / "corral.db", check_same_thread=False, isolation_level=None)
    other.execute("PRAGMA journal_mode=WAL")
    other.execute("PRAGMA locking_mode=EXCLUSIVE")
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        sqlite3.connect(tmp_path / "corral.db", timeout=0).execute("PRAGMA synchronous=FULL")
    done = threading.Timer(0.3, other.close)
    done.start()
    with writer_engine(url).begin() as connection:
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 0
    done.join()


async def test_the_two_processes_of_a_server_may_make_a_new_store_at_once(tmp_path: Path) -> None:
    file = tmp_path / "corral.db"
    file.touch()
    other = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")  # as for the change to WAL, for which the busy handler does not wait
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        sqlite3.connect(file, timeout=60).execute("PRAGMA journal_mode=WAL")
    done = threading.Timer(0.3, other.close)
    done.start()
    stores = await asyncio.gather(*(open_store(str(file), clock=Ticking()) for _ in range(2)))
    done.join()
    for store in stores:
        assert (await store.submit(new_job())).created
        await store.close()


async def test_a_closed_store_refuses(store: Store) -> None:
    await store.close()
    with pytest.raises(Unavailable):
        await store.submit(new_job())
    with pytest.raises(Unavailable):
        await store.load_live()


async def test_closing_finishes_what_was_begun(store: Store, store_url: str) -> None:
    writes = [asyncio.create_task(store.submit(new_job())) for _ in range(30)]
    await asyncio.sleep(0)
    await store.close()
    assert all(answer.created for answer in await asyncio.gather(*writes))
    again = await open_store(store_url, clock=Ticking())
    assert len(await again.load_live()) == 30
    await again.close()


@pytest.mark.parametrize("known", [True, False])
def test_opening_a_store_imports_no_migration_tool_and_no_other_dialect(tmp_path: Path, known: bool) -> None:
    """Alembic costs more memory and time than the rest of opening a store, and PostgreSQL's dialect 50 ms and 3 MB."""
    if known:
        asyncio.run(_opened_and_closed(str(tmp_path / "corral.db")))
    program = (
        "import asyncio, sys\nfrom corral.kernel.clock import VirtualClock\nfrom corral.store import open_store\n"
        f"store = asyncio.run(open_store({str(tmp_path / 'corral.db')!r}, clock=VirtualClock()))\n"
        "assert 'alembic' not in sys.modules\n"
        "assert 'sqlalchemy.dialects.postgresql' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_what_the_url_asks_of_sessions_holds_for_those_that_read_and_the_one_that_writes() -> None:
    url = parse_url("postgresql://ada@127.0.0.1/corral?options=-csearch_path%3Dresearch")
    asked: list[str] = []

    def connect(dialect: Any, record: Any, words: Any, named: dict[str, Any]) -> None:
        asked.append(named["options"])
        raise ConnectionError

    for engine in (reader_engine(url), writer_engine(url)):
        event.listen(engine, "do_connect", connect)
        with pytest.raises(ConnectionError):
            engine.connect()
    assert asked == ["-csearch_path=research", "-csearch_path=research -c lock_timeout=1000"]


async def test_a_process_that_can_open_no_file_is_told_so_and_not_that_the_database_is_read_only(
    tmp_path: Path,
) -> None:
    store = await open_store(sqlite_store(tmp_path), clock=Ticking())
    await store.submit(new_job())  # starts its threads
    kept = resource.getrlimit(resource.RLIMIT_NOFILE)
    store._reader.dispose()
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, kept[1]))
        with pytest.raises(Unavailable) as refused:
            await store.load_live()
        assert refused.value.code == "no-descriptors"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, kept)
    assert len(await store.load_live()) == 1
    await store.close()
