"""PostgreSQL works as SQLite does; while it is down calls are told to retry, and tasks run on."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator

import pytest

from tests.faults.house import House, shell_job, until
from tests.testbeds.postgresql import PostgresServer, binaries

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(300)]
Build = Callable[..., House]
JOBS = 100
OUTAGE_SECONDS = 12.0
LINES = 20


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[PostgresServer]:
    if binaries() is None:
        pytest.skip("PostgreSQL is not installed: tests/testbeds/apt.sh postgresql")
    server = PostgresServer()
    yield server
    server.close()


def test_a_job_is_submitted_run_and_read_on_postgresql(build: Build, own_postgres: PostgresServer) -> None:
    house = build(None, "--database-url", own_postgres.create())
    house.up()
    done = house.corral("run", "--name", "digits", "--", "sh", "-c", "echo seen; exit 3")
    assert done.returncode == 1, done.stderr + house.logs()
    assert "seen" in done.stdout
    job = house.job("digits")
    assert (job["state"], job["exit"]["code"]) == ("failed", 3)
    assert house.log("digits") == "seen\n"
    assert not (house.data / "corral.db").exists()
    house.down()
    house.up()
    assert house.job("digits")["exit"]["code"] == 3


def test_an_outage_costs_answers_and_nothing_else(build: Build, own_postgres: PostgresServer) -> None:
    house = build(None, "--database-url", own_postgres.create())
    house.up()
    draw = random.Random(7)
    expected: dict[str, int] = {}
    for number in range(JOBS):
        code = draw.choice((0, 0, 5, 9))
        pause = draw.choice((0.1, 0.2, 0.4, 0.9))  # some end before the outage does, some after it
        script = f"i=0; while [ $i -lt {LINES} ]; do echo line $i; i=$((i+1)); sleep {pause}; done; exit {code}"
        expected[house.submit(f"job-{number}", script)] = code

    own_postgres.stop()
    try:
        begun = time.monotonic()
        refused = 0
        while time.monotonic() - begun < OUTAGE_SECONDS:
            answer = house.call("POST", "/api/v3/jobs", shell_job(f"refused-{refused}", "true"))
            assert answer.status == 503, answer
            assert answer.body["code"] in ("store-unreachable", "store-outcome-unknown", "store-busy")
            assert int(answer.headers["Retry-After"]) >= 1
            refused += 1
            time.sleep(int(answer.headers["Retry-After"]))
            listed = house.call("GET", "/api/v3/jobs")
            assert (listed.status, int(listed.headers["Retry-After"])) == (503, 1), listed
        assert refused > 1
        assert "database" in house.refuses(5, "ls")
        assert house.call("GET", "/healthz").status == 200
    finally:
        own_postgres.start()

    until(lambda: house.call("GET", "/api/v3/jobs").status == 200, "answers after the outage")
    for ref, code in expected.items():
        ended = house.until_ended(ref)
        assert ended["exit"]["code"] == code, ended["exit"]
        assert house.log(ref).splitlines() == [f"line {number}" for number in range(LINES)]
        assert len(house.attempts(ref)) == 1
    assert house.until_ended(house.submit("after", "true"))["state"] == "succeeded"
