"""A server that cannot start gives the reason and a remedy in one sentence, and leaves no process."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import socket
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from corral import supervisor
from tests.faults.house import House, assert_sentence
from tests.faults.mounts import set_writable, small_disk

Build = Callable[..., House]


def refused_to_start(house: House, *options: str, code: int = 4) -> str:
    """The error of `corral up`; no process may run after it."""
    done = house.try_up(*options)
    assert done.returncode == code, done
    said = done.stderr.strip()
    assert_sentence(said)
    assert done.stdout == ""
    assert supervisor.running(house.data) is None
    return said


def test_a_port_in_use_is_named(build: Build) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        said = refused_to_start(build(), "--port", port)
    assert port in said and "--port" in said


def test_an_address_of_another_machine_is_refused(build: Build) -> None:
    for host in ("192.0.2.1", "no such host"):
        assert "--host" in refused_to_start(build(), "--host", host, code=2)


def test_a_second_up_on_one_data_folder_is_refused(build: Build) -> None:
    house = build()
    house.up()
    done = house.try_up()
    assert done.returncode == 4
    assert_sentence(done.stderr.strip())
    assert house.url in done.stderr and "corral down" in done.stderr
    assert house.call("GET", "/api/v3/me").status == 200


def test_two_ups_at_the_same_moment_leave_one_server(build: Build) -> None:
    """The first one's record is not there yet: the lock decides."""
    house = build()
    (house.data / "run").mkdir(parents=True, mode=0o700)
    handle = os.open(house.data / "run" / "supervisor.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        assert "already runs" in refused_to_start(house)
    finally:
        os.close(handle)


def test_a_read_only_data_folder_is_refused(build: Build) -> None:
    with small_disk(16) as disk, contextlib.closing(build(disk / "data")) as house:
        house.up()
        house.down()
        set_writable(disk, False)
        said = refused_to_start(house)
        assert "cannot be written" in said and "--data" in said
        new = build(disk / "other")
        assert "cannot be written" in refused_to_start(new)
        set_writable(disk, True)
        house.up()
        assert house.call("GET", "/api/v3/me").status == 200


def test_a_data_folder_that_is_a_file_is_refused(build: Build) -> None:
    house = build()
    house.data.write_text("not a folder")
    done = house.try_up()
    assert done.returncode == 2
    assert_sentence(done.stderr.strip().splitlines()[-1], ends=False)


@pytest.mark.parametrize(
    ("what", "hint"),
    [
        ("another file", "not a Corral database"),
        ("random bytes", "not a Corral database"),
        ("damaged pages", "corral restore"),
        ("another program's tables", "another program"),
        ("a newer schema", "newer Corral"),
        ("a folder", "not a file"),
    ],
)
def test_a_database_that_cannot_be_used_is_refused(build: Build, tmp_path: Path, what: str, hint: str) -> None:
    house = build()
    house.data.mkdir(mode=0o700)
    spoil(house, house.data / "corral.db", what)
    said = refused_to_start(house)
    assert hint in said


def spoil(house: House, database: Path, what: str) -> None:
    if what == "another file":
        database.write_text("dear diary, " * 1000)
    elif what == "random bytes":
        database.write_bytes(os.urandom(100_000))
    elif what == "a folder":
        database.mkdir()
    elif what == "another program's tables":
        with sqlite3.connect(database) as connection:
            connection.execute("CREATE TABLE recipes (name TEXT)")
        connection.close()
    else:
        house.up()
        house.down()
        if what == "a newer schema":
            with sqlite3.connect(database) as connection:
                connection.execute("UPDATE alembic_version SET version_num = '9999'")
            connection.close()
        else:
            with sqlite3.connect(database) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.close()
            with database.open("r+b") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(4096)
                file.write(os.urandom(size - 4096))


def test_a_damaged_key_is_refused_and_not_replaced(build: Build) -> None:
    house = build()
    house.up()
    house.down()
    key = house.data / "key"
    kept = key.read_bytes()
    key.write_bytes(b"not a key")
    assert "backup" in refused_to_start(house)
    assert key.read_bytes() == b"not a key"
    key.write_bytes(kept)
    house.up()
    assert house.call("GET", "/api/v3/me").status == 200


def test_a_cluster_document_with_a_mistake_is_refused(build: Build) -> None:
    house = build()
    file = house.home / "cluster.yaml"
    file.write_text("racks: [\n")
    done = house.try_up("--cluster", str(file))
    assert done.returncode == 2
    assert "cluster.yaml" in done.stderr and "Traceback" not in done.stderr


def test_a_database_server_that_is_away_is_refused_at_the_first_start(build: Build) -> None:
    said = refused_to_start(build(), "--database-url", "postgresql://corral@127.0.0.1:1/nothing", code=5)
    assert "database does not answer" in said


def test_a_data_folder_too_long_for_its_sockets_is_refused(build: Build) -> None:
    house = build()
    house.data = house.home / ("long" * 30)
    refused_to_start(house, code=2)


def test_a_server_that_cannot_come_up_says_where_to_look(build: Build) -> None:
    """An unforeseen error ends both halves again and again: `up` must not wait for ever."""
    house = build()
    house.environment["PYTHONPATH"] = f"{broken_package(house.home)}:{house.environment['PYTHONPATH']}"
    said = refused_to_start(house, code=1)
    named = re.search(r"(front|control)\.log", said)
    assert named is not None, said
    assert "NoSuchThing" in (house.data / "logs" / named[0]).read_text()


def broken_package(home: Path) -> Path:
    """A folder whose `uvicorn` fails when it is imported."""
    folder = home / "broken"
    folder.mkdir()
    (folder / "uvicorn.py").write_text("raise RuntimeError('NoSuchThing')\n")
    return folder


def test_the_refusal_of_a_started_server_is_json_free_of_insides(shared_house: House) -> None:
    answer = shared_house.call("GET", "/api/v3/jobs/none")
    assert set(answer.body) == {"code", "message"}, json.dumps(answer.body)
