"""Configuration on a real server: applied, compared, rolled back, and effective without a restart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.endtoend.platform import Job, Platform, on_devices, one

pytestmark = pytest.mark.timeout(300)

CLUSTER = "kind: Cluster\nnode: {cpu: 4, memory: 1Gi, devices: 4}\nnodes: [node1, node2]\n"
RESEARCH = "kind: Queue\nname: research\ndeserved: {devices: 4}\nlimit: {devices: 4}\n"


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    """A server of its own whose cluster the test may change."""
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    made = Platform(tmp_path, cluster=tmp_path / "cluster.yaml")
    made.up()
    yield made
    made.down()


def running(job: Job) -> bool:
    return bool(job["state"] == "running")


def explained(job: Job) -> bool:
    return bool(job["state"] == "waiting" and job["reasons"] and job["reasons"]["binding"]["code"] != "submitted")


def _nodes(platform: Platform) -> dict[str, Job]:
    return {node["name"]: node for node in platform.client.nodes()["items"]}


def _file(platform: Platform, text: str, name: str = "file.yaml") -> str:
    (platform.folder / name).write_text(text)
    return str(platform.folder / name)


def test_a_queue_is_applied_compared_looked_back_at_and_rolled_back(platform: Platform) -> None:
    file = _file(platform, RESEARCH)
    assert "+deserved:" in platform.corral("diff", file)
    platform.corral("diff", file, "--exit-code", code=1)
    assert platform.corral("apply", file, "-m", "a team of its own") == "+ Queue/research created (revision 1)\n"
    assert platform.corral("apply", file) == "= Queue/research unchanged (revision 1)\n"
    assert platform.corral("diff", file, "--exit-code") == ""
    platform.until(platform.submit(on_devices("first", 4, queue="research")), running)
    waits = platform.submit(on_devices("second", 2, queue="research"))
    assert "may hold 4 devices" in platform.until(waits, explained)["reasons"]["binding"]["message"]

    _file(platform, RESEARCH.replace("limit: {devices: 4}", "limit: {devices: 8}"))
    assert "-  devices: 4\n+  devices: 8\n" in platform.corral("apply", file, "--dry-run")
    assert json.loads(platform.corral("apply", file, "-o", "json"))["documents"][0]["revision"] == 2
    platform.until(waits, running)

    assert platform.corral("history", "queue/research", "-o", "name") == "2\n1\n"
    assert "a team of its own" in platform.corral("history", "queue/research")
    assert "-  devices: 4\n+  devices: 8\n" in platform.corral("diff", "queue/research")
    said = platform.refused("rollback", "queue/research", "1")
    assert "hold 6 devices, and its limit would be 4" in said and "--preempt" in said
    platform.corral("rollback", "queue/research", "1", "--preempt")
    yielded = platform.until(waits, explained)
    assert "lower limit" in yielded["reasons"]["binding"]["message"] or "lower limit" in yielded["waiting"]["message"]
    shown = yaml.safe_load(platform.corral("get", "queue/research", "-o", "yaml"))
    assert (shown["kind"], shown["limit"]) == ("Queue", {"devices": 4})
    assert platform.corral("get", "queues", "-o", "name") == "Queue/research\n"
    assert "queue-in-use" not in platform.refused("delete", "queue/research")
    platform.corral("stop", "first", "second", "--wait")
    assert platform.corral("delete", "queue/research") == "- Queue/research deleted (revision 4)\n"
    assert platform.corral("get", "queues", "--deleted", "-o", "name") == "Queue/research\n"
    assert 'There is no queue "research"' in platform.refused(
        "submit", "-f", "-", code=2, given=json.dumps(one("late", "true", queue="research"))
    )


def test_machines_follow_their_document_without_a_restart(platform: Platform) -> None:
    job = platform.until(platform.submit(on_devices("stays", 4)), running)
    node = job["placement"][0]["node"]
    other = "node1" if node.endswith("node2") else "node2"
    file = _file(platform, CLUSTER.replace("[node1, node2]", f"[{other}, node3]"))
    platform.corral("apply", file)
    for name in ("new", "newer"):
        taken = platform.until(platform.submit(on_devices(name, 4)), running)["placement"][0]["node"]
        assert taken in (f"local/{other}", "local/node3")
    nodes = _nodes(platform)
    assert set(nodes) == {"local/node1", "local/node2", "local/node3"}
    assert not nodes[node]["ready"] and "no Cluster document describes it any more" in nodes[node]["reason"]
    assert platform.client.job(job["id"])["state"] == "running"
    platform.client.close()
    platform.corral("down", "--data", str(platform.data))
    platform.up_again()
    assert not _nodes(platform)[node]["ready"] and platform.client.job(job["id"])["state"] == "running"
    platform.corral("stop", "stays", "--wait")
    platform.ran(one("later", "true"))
    assert node not in _nodes(platform)


def test_a_file_that_changed_is_taken_over_until_somebody_applies_another(platform: Platform) -> None:
    cluster = platform.folder / "cluster.yaml"

    def again() -> str:
        platform.client.close()
        platform.corral("down", "--data", str(platform.data))
        return platform.up_again()

    assert again() == "" and platform.client.configuration("cluster", "local")["revision"] == 1
    cluster.write_text(CLUSTER.replace("node2]", "node2, node3]"))
    assert "now at revision 2" in again()
    platform.corral("apply", _file(platform, CLUSTER.replace("node2]", "node2, node9]")))
    cluster.write_text(CLUSTER)
    said = again()
    assert "the stored document applies" in said and "revision 3" in said and "corral apply" in said
    assert set(_nodes(platform)) == {"local/node1", "local/node2", "local/node9"}


def test_mistakes_are_refused_with_what_was_meant_and_a_stable_exit_code(platform: Platform) -> None:
    assert 'did you mean "Queue"?' in platform.refused("get", "quue/research", code=2)
    assert "corral get queue" in platform.refused("get", "queue/nothing", code=3)
    assert "no revision" not in platform.refused("rollback", "queue/nothing", "1", code=3)
    bad = platform.refused("apply", _file(platform, "kind: Queue\nname: x\nwieght: 2\n"), code=2)
    assert '"weight"' in bad and "file.yaml:3:1: wieght" in bad
    above = platform.refused("apply", _file(platform, RESEARCH.replace("4", "40")))
    assert "40" in above and "8" in above
    assert platform.corral("get", "queues", "-o", "name") == ""
    assert "a kind alone" in platform.refused("get", "queue/research", "--deleted", code=2)
    larger = CLUSTER.replace("node2]", "node2, node3]")
    vision = "kind: VirtualCluster\nname: vision\ncells: [{level: node, count: 3}]\n"
    assert "vision" in platform.refused("apply", _file(platform, vision))
    platform.corral("apply", _file(platform, f"{larger}---\n{vision}"))
    assert platform.corral("get", "vc", "-o", "name") == "Queue/vision\n"
    assert "own 3 cells" in platform.refused("apply", _file(platform, CLUSTER))


def test_a_difference_is_coloured_on_a_terminal(platform: Platform) -> None:
    session = platform.terminal("diff", _file(platform, RESEARCH))
    session.expect("\x1b\\[32m\\+kind: Queue\x1b\\[0m")
    assert session.ended() == 0
