"""A full disk: calls get 503, acknowledged data stays, and work resumes when there is space again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from tests.faults.house import House, shell_job, until
from tests.faults.mounts import fill, small_disk

Build = Callable[..., House]


def test_a_full_disk_costs_answers_and_nothing_else(build: Build) -> None:
    with small_disk(24) as disk, contextlib.closing(build(disk / "data")) as house:
        house.up()
        running = house.submit("before", "while [ ! -e go ]; do sleep 0.1; done; exit 7")
        house.until_state(running, "running")
        acknowledged = [running]

        ballast = fill(disk)
        answers = [house.call("POST", "/api/v3/jobs", shell_job(f"full-{n}", "true")) for n in range(300)]
        acknowledged += [answer.body["id"] for answer in answers if answer.status == 201]
        refusals = [answer for answer in answers if answer.status != 201]
        assert refusals, "the disk was never full"
        assert {answer.status for answer in refusals} == {503}, refusals
        full = [answer for answer in refusals if answer.body["code"] == "storage-full"]  # one may find the store busy
        assert full, refusals
        message = full[-1].refused(503, "storage-full")
        assert "space" in message
        assert int(full[-1].headers["Retry-After"]) > 0
        assert house.call("GET", f"/api/v3/jobs/{running}").status == 200
        assert "space" in house.refuses(5, "run", "--detach", "--", "true")

        ballast.unlink()
        after = until(lambda: _submitted(house), "a submit that is taken")
        assert house.until_ended(after)["state"] == "succeeded"
        # Those of ended jobs go a little later, and tmpfs lists the newest first.
        (work,) = (disk / "data" / "engine" / "attempts").glob(f"{running}.*/work")
        (work / "go").touch()
        assert house.until_ended(running)["exit"]["code"] == 7
        for ref in acknowledged[1:]:
            assert house.until_ended(ref)["exit"]["code"] == 0


def test_the_server_comes_back_when_control_dies_while_the_disk_of_its_logs_is_full(build: Build) -> None:
    with small_disk(24) as disk, contextlib.closing(build(disk / "data")) as house:
        house.up()
        supervisor = house.processes()["supervisor"]
        for log in (disk / "data" / "logs").iterdir():
            with log.open("ab") as file:
                file.write(b" " * (-file.tell() % 4096))  # otherwise a log's last block would hold some lines more
        ballast = fill(disk)
        killed = house.kill("control")
        until(lambda: house.processes().get("control", killed) != killed or None, "another control")
        assert house.call("GET", "/api/v3/jobs").status == 200
        ballast.unlink()
        after = until(lambda: _submitted(house), "a submit that is taken")
        assert house.until_ended(after)["state"] == "succeeded"
        assert house.processes()["supervisor"] == supervisor


def _submitted(house: House) -> str | None:
    answer = house.call("POST", "/api/v3/jobs", shell_job("after", "true"))
    return str(answer.body["id"]) if answer.status == 201 else None
