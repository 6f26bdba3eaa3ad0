"""Rows Y1, Y2 and Y4 to Y8 of scheduling.md on a real YARN, through a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.endtoend.platform import Job
from tests.engines.yarn.harness import Places
from tests.engines.yarn.served import OnYarn, until
from tests.testbeds.hadoop.yarn import Yarn

pytestmark = [pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def platform(yarn: Yarn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnYarn]:
    made = OnYarn(tmp_path_factory.mktemp("server"), yarn)
    made.up()
    yield made
    made.down()


@pytest.fixture
def server(platform: OnYarn) -> Iterator[OnYarn]:
    """The same server for each test, with the former test's jobs removed, also if that test failed."""
    yield platform
    platform.clear()


def job_of(name: str, nodes: list[str], roles: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A job of small tasks on YARN's nodes."""
    small = {"cpu": "1", "memory": "128Mi"}
    for role in roles.values():
        role["resources"] = small | role.get("resources", {})
    return {"name": name, "framework": "shell", "roles": roles, "nodes": nodes, **fields}


def used_devices(yarn: Yarn) -> dict[str, int]:
    """The devices that YARN counts as used, by the host of the node."""
    found = {}
    for each in yarn.ask("/ws/v1/cluster/nodes")["nodes"]["node"]:
        told = each["usedResource"]["resourceInformations"]["resourceInformation"]
        found[each["id"]] = next((int(one["value"]) for one in told if one["name"] == "yarn.io/gpu"), 0)
    return found


def running(server: OnYarn, job: Job, tasks: int) -> Job:
    """The job once so many of its tasks run."""
    return server.until(job, lambda now: now["state"] == "running" and now["tasks"]["running"] == tasks)


def test_counts_named_devices_and_ports_are_given_as_asked_and_yarn_counts_them(server: OnYarn, tmp_path: Path) -> None:
    """Y1, Y2, Y7 and Y8: jobs that the Python client submits over REST."""
    wait = f"while [ ! -e {tmp_path}/done ]; do sleep 0.1; done"
    listen = (
        'python3 -c \'import os, socket; s = socket.create_server(("", int(os.environ["CORRAL_PORT_HTTP"]))); '
        'print("port", os.environ["CORRAL_PORT_HTTP"], flush=True); '
        f'exec("import time\\nwhile not os.path.exists(\\"{tmp_path}/done\\"): time.sleep(0.1)")\''
    )
    bits = {"command": f'echo "devices $CUDA_VISIBLE_DEVICES"; {wait}', "resources": {"devices": {"bitmap": "0x6"}}}
    web = {"replicas": 2, "command": listen, "ports": {"http": 1}, "resources": {"devices": 1}}
    named = server.submit(job_of("bits", ["nm1"], {"main": bits}))
    serving = server.submit(job_of("web", ["nm1"], {"main": web}))
    assert server.printed(named, "main-0", r"devices (\S+)")[1] == "1,2"
    ports = [int(server.printed(serving, f"main-{at}", r"port (\S+)")[1]) for at in range(2)]
    assert len(set(ports)) == 2
    assert all(20_000 <= port <= 29_999 for port in ports)
    told = {task: list(each["ports"]["http"]) for task, each in server.tasks(serving).items()}
    assert sorted(told.values()) == sorted([port] for port in ports)
    until(lambda: True if sorted(used_devices(server.yarn).values()) == [0, 4] else None)
    (tmp_path / "done").touch()
    assert {server.ended(job)["state"] for job in (named, serving)} == {"succeeded"}


def test_of_two_gangs_that_need_every_device_one_runs_whole_and_the_other_waits_without_a_container(
    server: OnYarn, tmp_path: Path
) -> None:
    """Y4."""
    jobs = []
    for name in ("first", "second"):
        wait = f"while [ ! -e {tmp_path}/{name} ]; do sleep 0.1; done"
        role = {"replicas": 4, "command": wait, "resources": {"devices": 2}}
        jobs.append(server.submit(job_of(name, ["nm1", "nm2"], {"main": role})))
    running(server, jobs[0], 4)
    assert server.client.job(jobs[1]["id"])["state"] == "waiting"
    assert server.app_of(jobs[0])
    assert not server.apps_of(jobs[1]), "it has no service"
    (tmp_path / "first").touch()
    assert server.ended(jobs[0])["state"] == "succeeded"
    running(server, jobs[1], 4)
    (tmp_path / "second").touch()
    assert server.ended(jobs[1])["state"] == "succeeded"


def test_a_role_grows_and_its_tasks_are_tried_again_by_their_exit_codes_in_one_service(
    server: OnYarn, tmp_path: Path
) -> None:
    """Y5 and Y6: an unknown code is retried and counted, a permanent one never is (table 2.2)."""
    wait = f"while [ ! -e {tmp_path}/done ]; do sleep 0.1; done"
    again = "case $CORRAL_ATTEMPT in *.0) exit 1;; esac; "
    roles = {"ps": {"command": wait}, "worker": {"replicas": {"min": 1, "max": 2}, "command": again + wait, "retry": 3}}
    grows = server.submit(job_of("grows", ["nm1", "nm2"], roles, countedRole="worker"))
    fails = server.submit(job_of("fails", ["nm1"], {"main": {"command": "exit 220"}}, retry=3))
    running(server, grows, 3)
    server.client.scale(grows["id"], 1, role="worker")
    running(server, grows, 2)
    server.client.scale(grows["id"], 2, role="worker")
    running(server, grows, 3)
    assert len(server.apps_of(grows)) == 1
    assert server.ended(fails)["state"] == "failed"
    assert len(server.attempts(fails, "main-0")) == 1
    (tmp_path / "done").touch()
    assert server.ended(grows)["state"] == "succeeded"


async def test_without_the_node_attribute_yarn_chooses_nodes_and_no_two_tasks_get_one_device(
    places: Places, tmp_path: Path
) -> None:
    place = places(attribute="nm.yarn.io/other")
    script = f'echo "$CORRAL_NODE $CORRAL_DEVICES"; while [ ! -e {tmp_path}/done ]; do sleep 0.1; done'
    async with place.open() as opened:
        hosts = [each.name for each in (await opened.raw.inventory()).nodes]
        launches = [place.launch("sh", "-c", script, node=hosts[0], devices=place.devices(3)) for _ in range(2)]
        for each in launches:
            await opened.engine.start(each)
        for each in launches:
            await opened.started(each.attempt)
        (tmp_path / "done").touch()
        for each in launches:
            assert (await opened.exited(each.attempt)).code == 0
        told = sorted(opened.log(each.attempt).strip() for each in launches)
        assert told == [f"{host} 0,1,2" for host in sorted(hosts)], "each has devices of its own node"
        await opened.engine.forget([each.attempt for each in launches])


async def test_a_request_names_the_label_of_its_node_and_an_exclusive_label_is_a_taint(
    yarn: Yarn, places: Places
) -> None:
    label = {"nodeLabelInfo": [{"name": "gold", "exclusivity": "true"}]}
    yarn.ask("/ws/v1/cluster/add-node-labels", method="POST", body=label)
    ids = {
        each["nodeAttributesInfo"]["nodeAttributeInfo"][0]["value"]: each["id"]
        for each in yarn.ask("/ws/v1/cluster/nodes")["nodes"]["node"]
    }
    path = f"/ws/v1/cluster/nodes/{ids['nm2']}/replace-labels"
    yarn.ask(path, method="POST", body={}, labels="gold")
    try:
        place = places()
        async with place.open() as opened:
            nodes = {each.name: each for each in (await opened.raw.inventory()).nodes}
            assert [taint.value for taint in nodes["yarn/nm2"].taints] == ["gold"]
            assert nodes["yarn/nm2"].labels.items() >= {"yarn.corral.dev/gold": "true"}.items()
            assert not nodes["yarn/nm1"].taints
            launch = place.launch("true", node="yarn/nm2")
            await opened.engine.start(launch)
            assert (await opened.started(launch.attempt)).host == ids["nm2"].partition(":")[0]
            assert (await opened.exited(launch.attempt)).code == 0
            await opened.engine.forget([launch.attempt])
        place.clear()  # while its node still has the label
    finally:
        yarn.ask(path, method="POST", body={}, labels="")
