"""Tasks measure the network between them in real processes, and nothing that others do or leave undone holds them up."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from corral.runtime.network_check import Found, Member, measure, rounds_of
from corral.runtime.peers import Api
from corral.runtime.plan import Plan
from corral.runtime.preflight import PreflightFailed, run
from tests.reserved import free_port
from tests.waiting import pause

LONG = 400.0
"""Seconds that are never used up where all members take part."""
ALONE = """
import json, sys
from corral.runtime.network_check import Member, measure
members = [Member(*each) for each in json.loads(sys.argv[1])]
found = measure(members, int(sys.argv[2]), sys.argv[3].encode(), float(sys.argv[4]))
print(json.dumps(found))
"""


def gang(count: int) -> list[Member]:
    return [Member(f"worker-{index}", "127.0.0.1", free_port()) for index in range(count)]


def started(
    members: Sequence[Member], place: int, *, key: str = "secret", seconds: float = LONG
) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", ALONE, json.dumps(members), str(place), key, str(seconds)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def told(process: subprocess.Popen[str]) -> Any:
    out, _ = process.communicate(timeout=500)
    ways, missed, ring, following = json.loads(out)
    return ways, missed, ring, following


@pytest.mark.parametrize("count", [2, 3, 4, 7, 8])
def test_every_pair_has_one_turn_and_no_task_has_two_in_a_round(count: int) -> None:
    rounds = rounds_of(count)
    pairs = [pair for each in rounds for pair in each]
    assert sorted(pairs) == [(one, other) for one in range(count) for other in range(one + 1, count)]
    for each in rounds:
        players = [player for pair in each for player in pair]
        assert len(set(players)) == len(players)


@pytest.mark.processes
def test_four_processes_measure_every_way_between_them_and_a_ring() -> None:
    members = gang(4)
    found = [told(each) for each in [started(members, place) for place in range(4)]]
    for place, (ways, missed, ring, following) in enumerate(found):
        assert missed == {} and ring > 0 and following == f"worker-{(place + 1) % 4}"
        assert set(ways) == {f"worker-{other}" for other in range(4) if other != place}
        assert all(rate > 0 for rate, _ in ways.values())
        called = {name for name, (_, latency) in ways.items() if latency is not None}
        assert called == {f"worker-{other}" for other in range(place + 1, 4)}, "each pair has one latency"


@pytest.mark.processes
def test_a_task_that_never_comes_is_told_and_all_others_are_measured() -> None:
    members = gang(4)
    found = {
        place: told(each) for place, each in {place: started(members, place, seconds=80) for place in (0, 1, 3)}.items()
    }
    for place, (ways, missed, ring, _) in found.items():
        assert set(ways) == {f"worker-{other}" for other in found if other != place}
        assert missed == {"worker-2": "it did not answer in time"} and ring is None


@pytest.mark.processes
def test_who_does_not_know_the_secret_of_the_job_is_not_measured() -> None:
    members = gang(2)
    own, foreign = started(members, 0, seconds=8), started(members, 1, key="another", seconds=8)
    for process in (own, foreign):
        ways, missed, ring, _ = told(process)
        assert (ways, ring) == ({}, None) and len(missed) == 1


def test_noise_on_the_port_does_not_keep_tasks_from_being_measured() -> None:
    members = gang(2)
    answers: dict[int, Found] = {}
    threads = [
        threading.Thread(target=lambda place=place: answers.update({place: measure(members, place, b"k", LONG)}))
        for place in range(2)
    ]
    threads[0].start()
    begun = time.monotonic()
    while True:
        try:
            noise = socket.create_connection((members[0].host, members[0].port), timeout=60)
            break
        except ConnectionRefusedError:
            assert threads[0].is_alive()
            time.sleep(pause(begun))
    with noise:
        noise.sendall(b"GET / HTTP/1.1\r\n" + b"x" * 200)
        threads[1].start()
        for thread in threads:
            thread.join(timeout=500)
    assert [len(answers[place].ways) for place in (0, 1)] == [1, 1]
    assert all(found.ring is not None and not found.missed for found in answers.values())


class Server(Api):
    """A server that knows where the tasks are, and keeps what it is told."""

    def __init__(self, members: Sequence[Member], *, complete: bool = True) -> None:
        self.members, self.complete = members, complete
        self.reports: list[Any] = []

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        if method == "POST":
            self.reports.append(body)
            return None
        peers = [
            {"role": "worker", "index": index, "host": each.host, "ports": {"probe": [each.port]}}
            for index, each in enumerate(self.members)
        ]
        return {"complete": self.complete, "peers": peers}


def plan(tmp_path: Path, attempt: str = "j.0.worker.0.0", *, seconds: float = 4, required: bool = False) -> Plan:
    given = {"checks": ["network"], "seconds": seconds, "port": "probe", "required": required}
    return Plan(attempt=attempt, command=["true"], work=str(tmp_path), preflight=given)


def test_a_network_that_cannot_be_measured_fails_the_task_only_where_the_job_requires_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server = Server(gang(2))
    run(plan(tmp_path), server, "secret")
    assert "worker-1 could not be measured: it did not answer in time; the command starts" in capfd.readouterr().err
    (report,) = server.reports
    assert (report["kind"], report["tasks"], report["ways"]) == ("network", 2, [])
    assert report["missed"] == [["worker-1", "it did not answer in time"]]
    with pytest.raises(PreflightFailed, match="worker-1 could not be measured"):
        run(plan(tmp_path, required=True), server, "secret")


def test_a_gang_that_does_not_start_is_waited_for_no_longer_than_the_job_says(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server = Server(gang(2), complete=False)
    run(plan(tmp_path, seconds=0.2), server, "secret")
    assert "the network is not measured: waited 0.2 s for the other tasks" in capfd.readouterr().err
    assert server.reports == []


def test_a_task_that_starts_again_does_not_disturb_those_that_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server = Server(gang(2))
    run(plan(tmp_path, "j.0.worker.0.1", required=True), server, "secret")
    assert "the other tasks run already" in capfd.readouterr().err and server.reports == []


def test_a_port_that_another_program_holds_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    members = gang(2)
    with socket.create_server((members[0].host, members[0].port)):
        run(plan(tmp_path), Server(members), "secret")
    assert "Address already in use" in capfd.readouterr().err
