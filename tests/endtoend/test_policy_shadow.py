"""A candidate decides beside a real server: on its journal, while it runs, without a trace in the server."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.endtoend.platform import CORRAL, Platform, on_devices

pytestmark = pytest.mark.timeout(600)

DOCUMENTS = """\
kind: Cluster
engine: local
nodes: {node1: {devices: 4, cpu: 8}}
---
kind: Policy
name: default
preset: fifo
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A server of one node under `fifo`."""
    folder = tmp_path_factory.mktemp("shadow")
    (folder / "cluster.yaml").write_text(DOCUMENTS)
    made = Platform(folder, cluster=folder / "cluster.yaml")
    made.up()
    yield made
    made.down()


def _sleeps(name: str, seconds: float, longest: str) -> dict[str, Any]:
    return on_devices(name, 4, command=f"sleep {seconds}", maxDuration=longest)


def _told(server: Platform, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        server.corral("policy", "shadow", *words, "--data", str(server.data), "-o", "json")
    )
    return found


def test_it_says_where_a_candidate_decides_otherwise_and_does_nothing(server: Platform) -> None:
    all_there = server.data.parent / "all-there"
    server.submit(on_devices("first", 4, command=f"until [ -e {all_there} ]; do sleep 0.1; done", maxDuration="1m"))
    for name, seconds, longest in (("long", 10.0, "1h"), ("short", 7.0, "1m")):
        server.submit(_sleeps(name, seconds, longest))
        server.queued(name)
    all_there.touch()
    for name in ("first", "long", "short"):
        assert server.ended(name)["state"] == "succeeded"
    before = _state(server)
    same = _told(server, "fifo")
    assert same["inForce"] == "fifo" and same["problem"] == "" and same["differences"] == []
    assert same["decisions"]["start"]["alike"] == 3 and same["total"]["candidate"]["started"] == 3
    other = _told(server, "srtf", "--within", "1s")
    # A slow machine may have told of the first job's start more than a second late, which no candidate does.
    both = [each for each in other["differences"] if each["name"] != "first"]
    assert {(each["kind"], each["name"]) for each in both} == {("start", "long"), ("start", "short")}, other
    assert all("devices" in each["why"] for each in both)
    assert {each["name"] for each in other["gains"]} - {"first"} == {"short"}
    assert {each["name"] for each in other["losses"]} == {"long"}
    assert other["total"]["candidate"]["waitP95"] < other["total"]["inForce"]["waitP95"]
    assert _state(server) == before
    elsewhere = {**server.env, "CORRAL_DATA_FOLDER": str(server.data.parent / "nothing-here")}
    for words in (["--server"], []):  # without a journal on this machine the server is asked as well
        told = json.loads(_of_server(server, elsewhere, "fifo", *words))
        assert told["candidate"] == "fifo" and told["decisions"] == same["decisions"]
        assert told["total"]["inForce"]["started"] == told["total"]["candidate"]["started"] == 3
    (server.data.parent / "quotas").mkdir()
    (server.data.parent / "quotas" / "queue.yaml").write_text("kind: Queue\nname: default\nlimit: {devices: 2}\n")
    told = json.loads(_of_server(server, elsewhere, "--documents", str(server.data.parent / "quotas")))
    assert told["total"]["candidate"]["started"] == 0 and told["total"]["inForce"]["started"] == 3
    assert _state(server) == before


def _of_server(server: Platform, env: dict[str, str], *words: str) -> str:
    """What the command prints, by what the server answers."""
    done = subprocess.run(
        [CORRAL, "policy", "shadow", *words, "-o", "json"], env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_goes_on_beside_the_server_and_ctrl_c_shows_the_report(server: Platform) -> None:
    words = [CORRAL, "policy", "shadow", "srtf", "--data", str(server.data), "-o", "json"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    follows = subprocess.Popen([*words, "--follow"], env=server.env, **pipes)
    lasts = subprocess.Popen([*words, "--for", "4s"], env=server.env, **pipes)
    server.ran(_sleeps("beside", 0.1, "1m"))
    said, complaint = lasts.communicate(timeout=240)
    assert lasts.returncode == 0, complaint
    follows.send_signal(signal.SIGINT)
    followed, complaint = follows.communicate(timeout=240)
    assert follows.returncode == 0 and "Traceback" not in complaint, complaint
    lasted, told = json.loads(said), json.loads(followed)
    assert lasted["problem"] == told["problem"] == "" and lasted["candidate"] == told["candidate"] == "srtf"
    # The end of the one that lasts may come between the start in force and the candidate's.
    assert told["total"]["inForce"]["started"] == told["total"]["candidate"]["started"]


def _state(server: Platform) -> tuple[Any, ...]:
    """Jobs, the events of each, and those of the server."""
    jobs = server.client.jobs()["items"]
    return jobs, [server.client.job_events(job["id"])["items"] for job in jobs], server.client.server_events()["items"]
