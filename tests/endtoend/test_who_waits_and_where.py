"""Placement of tasks, and the reasons of waiting jobs, on a real server."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.endtoend.platform import Job, Platform, on_devices, one
from tests.waiting import pause

pytestmark = pytest.mark.timeout(300)


def nodes_of(platform: Platform, job: Job) -> list[str]:
    return sorted(task["node"] for task in platform.client.placement(job["id"])["items"])


def running(job: Job) -> bool:
    return bool(job["state"] == "running" and job["tasks"]["running"] == job["tasks"]["total"])


def explained(job: Job) -> bool:
    """Whether the scheduler has given a waiting job its reason."""
    return bool(job["state"] == "waiting" and job["reasons"] and job["reasons"]["binding"]["code"] != "submitted")


def explains(platform: Platform, job: str, words: str) -> str:
    """What `corral explain` says once it has these words: a forecast that is not there within 2 s is left out."""
    begun = time.monotonic()
    while words not in (said := platform.corral("explain", job)):
        assert time.monotonic() < begun + 150, said
        time.sleep(pause(begun))
    return said


def test_a_job_waits_with_its_reason_until_there_is_room(platform: Platform) -> None:
    holder = platform.submit(on_devices("holder", 4, replicas=4))
    platform.until(holder, running)
    waiting = platform.submit(on_devices("patient", 1, command="true"))
    found = platform.until(waiting, explained)
    assert found["state"] == "waiting" and "device" in found["reasons"]["binding"]["message"]
    assert "Waiting: " in platform.corral("get", "patient")
    said = platform.corral("explain", "patient")
    assert said.startswith("waiting: ") and "device" in said
    platform.corral("stop", "holder")
    assert platform.ended(waiting)["state"] == "succeeded"


def test_a_waiting_job_says_until_when_and_what_would_start_it_now(platform: Platform) -> None:
    holder = platform.submit(on_devices("hour", 4, replicas=3, maxDuration="1h", preemptible=False))
    platform.until(holder, running)
    waiting = platform.submit(on_devices("eager", 4, replicas=2))
    platform.until(waiting, explained)
    said = explains(platform, "eager", "Start: at the latest in ")
    assert "when job hour ends" in said
    assert "roles.main.replicas: It would start now with 1 task instead of 2." in said
    answer = json.loads(platform.corral("explain", "eager", "-o", "json"))
    assert answer["estimate"]["basis"] == "at-latest" and 3000 < answer["estimate"]["seconds"] < 3660
    assert [job["name"] for job in answer["estimate"]["after"]] == ["hour"]
    assert {change["path"]: (change["from"], change["to"]) for change in answer["changes"]} == {
        "roles.main.replicas": (2, 1), "roles.main.resources.devices": (4, 2),
    }  # fmt: skip
    smaller = platform.submit(on_devices("taught", 4, replicas=1))
    assert platform.until(smaller, running)


def test_a_job_is_held_while_its_budget_is_used_up_and_goes_on_after_a_top_up(platform: Platform) -> None:
    spender = platform.submit(on_devices("spender", 1))
    platform.until(spender, running)
    try:
        platform.corral("budget", "set", "queue", "default", "month", "0.0001", "--when-used-up", "hold")
        held = platform.until(spender, explained)
        assert held["reasons"]["binding"]["code"] == "budget-used-up"
        assert "The budget of queue default for this month is used up" in platform.corral("explain", "spender")
        (receipt,) = platform.client.receipts(spender["id"])["items"]
        assert (receipt["rule"], receipt["state"], receipt["devices"]) == ("budget", "away", 1)
        assert "it goes on by itself" in platform.refused("resume", "spender")
        platform.corral("budget", "top-up", "queue", "default", "month", "1000", "--reason", "a deadline")
        platform.until(spender, running)
        platform.until(spender, lambda job: job["receipts"][0]["state"] == "returned")
        assert len(platform.client.receipts(spender["id"])["items"]) == 1
    finally:
        platform.corral("budget", "remove", "queue", "default", "month")


def test_a_gang_gets_all_or_nothing(platform: Platform) -> None:
    holder = platform.submit(on_devices("three-nodes", 4, replicas=3))
    platform.until(holder, running)
    gang = platform.submit(on_devices("needs-two", 4, replicas=2))
    platform.until(gang, explained)
    assert platform.client.job(gang["id"])["placement"] == []
    platform.corral("stop", "three-nodes")
    assert len(nodes_of(platform, platform.until(gang, running))) == 2


def test_the_higher_priority_goes_first(platform: Platform) -> None:
    holder = platform.submit(on_devices("full", 4, replicas=4, preemptible=False))
    platform.until(holder, running)
    low = platform.submit(on_devices("low", 4, replicas=4, priority="oppo"))
    high = platform.submit(on_devices("high", 4, replicas=4, priority="prod"))
    platform.until(high, explained)
    platform.until(low, explained)
    explains(platform, "low", "1 ahead of it: high")
    platform.corral("stop", "--wait", "full")
    platform.until(high, running)
    assert platform.until(low, explained)["state"] == "waiting"


def test_a_small_job_fills_a_gap_that_the_head_cannot_use(platform: Platform) -> None:
    holder = platform.submit(on_devices("most", 4, replicas=3, preemptible=False))
    platform.until(holder, running)
    head = platform.submit(on_devices("head", 4, replicas=4, priority="prod"))
    platform.until(head, explained)
    short = platform.submit(on_devices("short", 1, command="true", maxDuration=5))
    endless = platform.submit(on_devices("endless", 1))
    seen = {job["id"]: platform.until(job, lambda now: now["state"] != "waiting" or explained(now))
            for job in (short, endless)}  # fmt: skip
    assert seen[endless["id"]]["state"] == "waiting", "it would delay the head for ever"
    assert platform.client.job("head")["state"] == "waiting"
    platform.corral("stop", "endless", "most")
    platform.until(head, running)


def test_named_devices_are_given_and_no_others(platform: Platform) -> None:
    job = platform.submit(on_devices("named", {"count": 2, "ids": [1, 3]}))
    (task,) = platform.client.placement(platform.until(job, running)["id"])["items"]
    assert task["devices"] == [1, 3]
    again = platform.submit(on_devices("named-too", {"count": 1, "ids": [3]}, replicas=4))
    found = platform.until(again, explained)
    assert found["state"] == "waiting"


@pytest.mark.parametrize(("level", "nodes", "racks"), [("node", 1, 1), ("rack", 2, 1)])
def test_a_required_level_keeps_a_gang_inside_it(platform: Platform, level: str, nodes: int, racks: int) -> None:
    replicas = 4 if level == "node" else 8
    job = platform.submit(on_devices(f"in-one-{level}", 1, replicas=replicas, topology={"required": level}))
    placed = nodes_of(platform, platform.until(job, running))
    assert len(set(placed)) == nodes
    rack_of = {node["name"]: node["levels"]["rack"] for node in platform.client.nodes()["items"]}
    assert len({rack_of[node] for node in placed}) == racks


def test_a_required_level_that_is_taken_is_waited_for(platform: Platform) -> None:
    holder = platform.submit(on_devices("three-of-each", 3, replicas=4))
    platform.until(holder, running)
    strict = platform.submit(on_devices("strict", 1, replicas=2, topology={"required": "node"}))
    found = platform.until(strict, explained)
    assert found["state"] == "waiting" and "node" in found["reasons"]["binding"]["message"]
    easy = platform.submit(on_devices("easy", 1, replicas=2, topology={"preferred": "node"}, priority="prod"))
    placed = platform.until(easy, running)
    assert len(set(nodes_of(platform, placed))) == 2


def test_two_devices_of_a_task_are_under_one_switch(platform: Platform) -> None:
    job = platform.submit(on_devices("pair", 2, replicas=2, topology={"required": "node", "preferred": "pcie-switch"}))
    platform.until(job, running)
    assert {tuple(task["devices"]) for task in platform.client.placement(job["id"])["items"]} == {(0, 1), (2, 3)}
    shown = platform.corral("nodes", nodes_of(platform, job)[0])
    assert "pair main-0" in shown and "pcie-switch" in shown


def test_what_no_machine_can_hold_is_refused_unless_one_waits_for_it(platform: Platform) -> None:
    text = json.dumps(on_devices("giant", 5))
    assert "--wait-for-capacity" in platform.refused("submit", "-", given=text)
    platform.corral("submit", "-", "--wait-for-capacity", given=text)
    found = platform.until("giant", explained)
    assert found["state"] == "waiting" and not found["reasons"]["possible"]
    text = json.dumps(on_devices("giant-2", 5))
    tried = platform.run("submit", "--dry-run", "-", given=text)
    assert (tried.returncode, tried.stdout) == (4, "") and "--wait-for-capacity" in tried.stderr
    assert platform.run("run", "--dry-run", "-d", "5", "--", "true").returncode == 4
    assert "would wait" in platform.corral("submit", "--dry-run", "--wait-for-capacity", "-", given=text)


def test_a_node_is_chosen_by_its_labels(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(
        "kind: Cluster\nnode: {cpu: 2, memory: 1Gi}\n"
        "racks: {r1: {nodes: {slow: {labels: {disk: hdd}}, fast: {labels: {disk: ssd}}}}}\n"
    )
    platform = Platform(tmp_path, cluster=cluster)
    platform.up()
    try:
        for kind, node in (("ssd", "local/fast"), ("hdd", "local/slow")):
            job = platform.ran(one(f"on-{kind}", "echo $CORRAL_NODE", nodeSelector={"disk": kind}))
            assert platform.log(job) == f"{node}\n"
        text = json.dumps(one("on-tape", "true", nodeSelector={"disk": "tape"}))
        assert "disk" in platform.refused("submit", "-", given=text)
    finally:
        platform.down()
