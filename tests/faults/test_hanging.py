"""A hanging front or control is found and replaced, a busy one keeps its lease, and /readyz names the problem."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import resource
import signal
from collections.abc import Callable

import pytest

from tests.faults.house import House, until
from tests.faults.mounts import bound_inodes, fill, small_disk

Build = Callable[..., House]


@pytest.mark.parametrize("name", ["front", "control"])
def test_a_half_that_is_stopped_is_replaced_after_20_s_and_doctor_tells_of_it(build: Build, name: str) -> None:
    house = build()
    house.up()
    before = house.processes()
    os.kill(before[name], signal.SIGSTOP)
    if name == "control":
        said = until(lambda: found if (found := readyz(house)).get("degraded") else None, "what is wrong")
        assert said["ready"] and any("has not answered" in reason for reason in said["reasons"])
    now = until(lambda: found if (found := house.processes()).get(name, before[name]) != before[name] else None, name)
    assert {**now, name: before[name]} == before
    assert house.until_ended(house.submit("after", "exit 5"))["exit"]["code"] == 5
    until(lambda: readyz(house) == {"ready": True, "reasons": [], "degraded": False} or None, "a server that is well")
    checks = json.loads(house.corral("doctor", "--data", str(house.data), "-o", "json").stdout)
    (told,) = [check for check in checks if check["name"] == name and check["state"] == "note"]
    assert "no sign of life for 20 s" in told["message"]


def test_a_full_disk_and_missing_inodes_are_told_and_so_is_their_end(build: Build) -> None:
    with small_disk(24) as disk, contextlib.closing(build(disk / "data")) as house:
        house.up()
        until(lambda: readyz(house) == {"ready": True, "reasons": [], "degraded": False}, "a server that is well")
        ballast = fill(disk)
        said = until(lambda: found if (found := readyz(house))["degraded"] else None, "a full disk")
        assert said["ready"] and any("full" in reason for reason in said["reasons"]), said
        ballast.unlink()
        until(lambda: not readyz(house)["degraded"], "a disk that has space")
        bound_inodes(disk, 8)
        said = until(lambda: found if (found := readyz(house))["degraded"] else None, "no inodes")
        assert any("inodes" in reason for reason in said["reasons"]), said
        checks = house.corral("doctor", "--data", str(house.data), "-o", "json")
        assert "inodes left" in checks.stdout
        bound_inodes(disk, 10_000)
        until(lambda: not readyz(house)["degraded"], "a disk that has inodes")


def test_missing_inodes_are_an_event_and_so_is_their_end(build: Build) -> None:
    with small_disk(24) as disk, contextlib.closing(build(disk / "data")) as house:
        house.up()
        bound_inodes(disk, 8)
        (said,) = until(lambda: told(house), "the event of what is missing")
        assert said["kind"] == "server.degraded"
        assert "inodes left" in said["message"] and said["actor"].startswith("front on ")
        bound_inodes(disk, 10_000)
        until(lambda: told(house)[0]["kind"] == "server.recovered", "the event of its end")
        shown = house.corral("events", "--server").stdout
        assert shown.index("server.degraded") < shown.index("server.recovered")


def told(house: House) -> list[dict[str, str]]:
    """The server's own events, the latest first."""
    found: list[dict[str, str]] = house.call("GET", "/api/v3/server/events").body["items"]
    return found


@pytest.mark.parametrize("name", ["front", "control"])
def test_a_half_without_free_descriptors_is_told_of_by_readyz_and_doctor(build: Build, name: str) -> None:
    house = build()
    house.up()
    pid = house.processes()[name]
    open_now = len(os.listdir(f"/proc/{pid}/fd"))
    kept = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (open_now + 12, kept[1]))
    said = until(lambda: found if (found := readyz(house))["degraded"] else None, "few descriptors")
    assert any("file descriptors left" in reason for reason in said["reasons"]), said
    checks = house.corral("doctor", "--data", str(house.data), "-o", "json")
    assert checks.returncode == 4
    found = {check["name"]: check["state"] for check in json.loads(checks.stdout)}
    assert found[f"{name}'s descriptors"] == "bad"
    resource.prlimit(pid, resource.RLIMIT_NOFILE, kept)
    until(lambda: not readyz(house)["degraded"], "descriptors")


def test_a_front_without_any_free_descriptor_says_so_to_whom_it_still_hears(build: Build) -> None:
    house = build()
    house.up()
    pid = house.processes()["front"]
    host, _, port = house.url.partition("//")[2].partition(":")
    line = http.client.HTTPConnection(host, int(port), timeout=120)
    kept = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    try:
        line.request("GET", "/readyz")
        assert json.load(line.getresponse())["ready"]
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, kept[1]))

        def look() -> dict[str, object] | None:
            line.request("GET", "/readyz")
            said: dict[str, object] = json.load(line.getresponse())
            return said if said["degraded"] else None

        said = until(look, "no descriptors")
        assert "file descriptors left" in json.dumps(said)
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, kept)
        line.close()
    until(lambda: not readyz(house)["degraded"], "descriptors")


def test_front_is_not_ready_where_it_cannot_read_what_is_stored(build: Build) -> None:
    house = build()
    house.up()
    database = house.data / "corral.db"
    os.kill(house.processes()["control"], signal.SIGSTOP)
    with database.open("r+b") as file:  # control holds no lock while nothing is written
        kept = file.read()
        file.seek(0)
        file.write(b"\xff" * len(kept))
        file.flush()
        with (house.data / "corral.db-wal").open("r+b") as log:
            log.truncate()
            assert not until(lambda: found if not (found := readyz(house))["ready"] else None, "no database")[
                "degraded"
            ]
        file.seek(0)
        file.write(kept)


def readyz(house: House) -> dict[str, object]:
    answer = house.call("GET", "/readyz", token="")
    assert answer.status in (200, 503), answer
    body: dict[str, object] = answer.body
    return body
