"""Backup and restore of a real server on both databases while jobs run, and a change of the key."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator

import pytest

from tests.endtoend.platform import Job, Platform, one
from tests.testbeds.postgresql import PostgresServer

pytestmark = pytest.mark.timeout(300)
ONCE = {"fancy": False, "maxRetries": 0}


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest) -> Iterator[PostgresServer | None]:
    """The server's database; None is the embedded one."""
    if request.param == "sqlite":
        yield None
        return
    yield request.getfixturevalue("postgres")


@pytest.fixture(scope="module")
def server(database: PostgresServer | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    env = {"CORRAL_DATABASE_URL": database.create()} if database else {}
    made = Platform(tmp_path_factory.mktemp("kept"), env=env)
    made.up()
    yield made
    made.down()


def held(platform: Platform, name: str, code: int) -> tuple[Job, int]:
    """A job that exits with `code` once its file `NAME` exists; also its pid."""
    command = f"echo pid $$; until [ -e {platform.folder}/{name} ]; do sleep 0.05; done; echo over; exit {code}"
    job = platform.submit(one(name, command, role={"retryPolicy": ONCE}, retryPolicy=ONCE))
    return job, int(platform.printed(job, "main-0", r"pid (\d+)\n")[1])


def test_a_restored_server_adopts_what_it_knows_and_ends_the_rest(
    platform: Platform, database: PostgresServer | None
) -> None:
    where = ["--data", str(platform.data)]
    copy = platform.folder / "copy"
    past = platform.ran(one("past", "echo kept; exit 2"))
    adopted, pid = held(platform, "adopted", 6)
    missed, _ = held(platform, "missed", 5)
    for job in (adopted, missed):
        platform.until(job, lambda now: now["state"] == "running")
    platform.corral("backup", str(copy), *where)
    assert copy.stat().st_mode & 0o777 == 0o600
    assert "choose another name" in platform.refused("backup", str(copy), *where)

    (platform.folder / "missed").touch()
    assert platform.ended(missed)["exit"]["code"] == 5
    future, stray = held(platform, "future", 0)
    handle = os.pidfd_open(stray)
    assert "corral down" in platform.refused("restore", str(copy), "--yes", *where)
    platform.corral("down", *where)
    if database is not None:
        assert "empty database" in platform.refused("restore", str(copy), "--yes", *where)
        database.empty(platform.env["CORRAL_DATABASE_URL"])
    platform.corral("restore", str(copy), "--yes", *where)
    platform.up_again()

    assert platform.client.job(past["id"])["exit"]["code"] == 2 and platform.log(past) == "kept\n"
    platform.refused("get", future["id"], code=3)
    assert select.select([handle], [], [], 200)[0], "a task that the restored store does not know still runs"
    os.close(handle)
    lost = platform.ended(missed)
    assert lost["state"] == "failed" and lost["exit"]["message"]
    assert platform.client.job(adopted["id"])["state"] == "running"
    os.kill(pid, 0)
    (platform.folder / "adopted").touch()
    ended = platform.ended(adopted)
    assert ended["exit"]["code"] == 6 and platform.log(ended) == f"pid {pid}\nover\n"
    assert len(platform.attempts(ended, "main-0")) == 1
    assert platform.ran(one("future", "true"))["state"] == "succeeded"


def test_a_new_key_opens_every_secret_and_costs_no_task(platform: Platform) -> None:
    where = ["--data", str(platform.data)]
    key = platform.data / "key"
    before = key.read_bytes()
    platform.client.put_secret("hub", "correct-horse")
    running, _ = held(platform, "running", 4)
    assert "corral down" in platform.refused("rotate-key", *where)
    platform.corral("down", *where)
    done = platform.run("rotate-key", *where)
    assert done.returncode == 0 and "sealed with the new key" in done.stderr
    assert key.read_bytes() != before and key.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in platform.data.glob("key*")] == ["key"]
    platform.up_again()
    job = platform.ran(one("reads", "echo $HUB", secrets={"HUB": "hub"}))
    assert platform.log(job) == "correct-horse\n"
    (platform.folder / "running").touch()
    assert platform.ended(running)["exit"]["code"] == 4


def test_what_is_no_backup_is_refused_and_harms_nothing(platform: Platform) -> None:
    where = ["--data", str(platform.data)]
    job = platform.ran(one("kept", "true"))
    platform.corral("down", *where)
    wrong = platform.folder / "wrong"
    wrong.write_text("dear diary")
    assert "backup" in platform.refused("restore", str(wrong), "--yes", *where)
    assert "--yes" in platform.refused("restore", str(wrong), *where, code=2)
    platform.up_again()
    assert platform.client.job(job["id"])["state"] == "succeeded"
