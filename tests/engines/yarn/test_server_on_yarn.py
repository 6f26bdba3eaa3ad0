"""A server on YARN: gangs over both nodes, retries, a killed server, and a job on this machine beside them."""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.client import Client
from tests.conftest import IN_CI
from tests.endtoend import opened_services, several_services
from tests.endtoend.platform import ROOT, Job
from tests.engines.slow_jobs import gang, looked_into
from tests.engines.yarn.served import OnYarn, agents_of, until
from tests.frameworks.environments import environment
from tests.frameworks.notebook_visits import is_opened_and_tells_that_somebody_works_in_it
from tests.runtime.event_files.encoder import NAME, scalars
from tests.testbeds.hadoop.mapreduce import word_count
from tests.testbeds.hadoop.yarn import Yarn
from tests.testbeds.vscode import packages

pytestmark = [pytest.mark.timeout(600)]
HERE = {"count": 2, "model": "described-a100"}
"""Devices that only the nodes described on this machine have."""
THERE = ["nm1", "nm2"]
POINTS = (("loss", 0.25), ("rate", 0.125))
"""A curve and its last value."""
ALL_MB = 2 * 6144
"""The memory of both nodes."""


@pytest.fixture(scope="module")
def platform(yarn: Yarn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnYarn]:
    for user in ("ada", "bob"):
        yarn.hdfs.add_folder(f"/user/{user}", user)
    users = ("--yarn-users", "ada=ada,bob=bob", "--yarn-queues", "research=research", "--trust-users")
    stage = f"env PYTHONPATH={ROOT} {sys.executable} -m corral.storage stage"
    env = {"CORRAL_YARN_STAGE_COMMAND": stage, "CORRAL_LOCALITY_SECONDS": "60"}
    made = OnYarn(tmp_path_factory.mktemp("server"), yarn, *users, env=env)
    made.up()
    yield made
    made.down()


@pytest.fixture
def server(platform: OnYarn) -> Iterator[OnYarn]:
    """The same server for each test, with the former test's jobs removed, also if that test failed."""
    yield platform
    platform.clear()


def on_yarn(name: str, command: str, *, replicas: int = 1, devices: int = 1, **fields: Any) -> dict[str, Any]:
    """A job of small tasks on YARN's nodes."""
    resources = {"cpu": "1", "memory": "128Mi", "devices": devices}
    role = {"replicas": replicas, "resources": resources, "command": command}
    return {"name": name, "framework": "shell", "roles": {"main": role}, "nodes": THERE, **fields}


def engines_of(server: OnYarn, job: Job) -> set[str]:
    return {task["node"].partition("/")[0] for task in server.tasks(job).values()}


def test_a_gang_runs_over_both_nodes_beside_a_job_on_this_machine_and_survives_a_killed_server(server: OnYarn) -> None:
    script = (
        'echo "devices $CORRAL_DEVICES"; while [ ! -e done ]; do sleep 0.1; done; echo "task $CORRAL_TASK_INDEX ends"'
    )
    there = server.submit(on_yarn("gang", script, replicas=4, devices=2))
    here = server.submit(
        {
            "name": "here",
            "framework": "shell",
            "roles": {"main": {"resources": {"cpu": "0.1", "devices": HERE}, "command": script}},
        }
    )
    for job in (there, here):
        server.until(job, lambda now: now["state"] == "running")
    assert (engines_of(server, there), engines_of(server, here)) == ({"yarn"}, {"local"})
    tasks = server.tasks(there)
    assert len(server.apps_of(there)) == 1, "one service for the gang"
    assert sorted(task["node"] for task in tasks.values()) == ["yarn/nm1", "yarn/nm1", "yarn/nm2", "yarn/nm2"]
    given = {task: server.printed(there, task, r"devices (\S+)")[1] for task in tasks}
    by_node: dict[str, list[str]] = {}
    for task, devices in given.items():
        by_node.setdefault(tasks[task]["node"], []).extend(devices.split(","))
    assert all(sorted(each) == ["0", "1", "2", "3"] for each in by_node.values()), by_node
    server.kill("control", "front")
    until(lambda: True if server.run("ls").returncode == 0 else None)
    for job in (there, here):
        for task in server.tasks(job):
            server.corral("exec", job["id"], task, "--", "touch", "done")
        assert server.ended(job)["state"] == "succeeded"
        assert [len(server.attempts(job, task)) for task in server.tasks(job)] == [1] * len(server.tasks(job))
    assert server.log(there, "main-3").endswith("task 3 ends\n")
    server.gone(there)


def test_a_job_starts_on_the_node_that_holds_its_input(server: OnYarn, yarn: Yarn) -> None:
    yarn.hdfs.write("/near/data", b"x" * 5000)
    given = [{"uri": f"{yarn.hdfs.native}/near", "path": "given"}]
    script = "wc -c <given/data; while [ ! -e done ]; do sleep 0.1; done"
    until(lambda: True if equally_free(server) else None)  # inputs break ties, and only between such nodes
    job = server.submit(on_yarn("near", script, inputs=given))
    server.until(job, lambda now: now["state"] == "running")
    note = "5.0 of 5.0 kB of its inputs are on its nodes"
    nodes = [task["node"] for task in server.tasks(job).values()]
    assert nodes == ["yarn/nm2"], f"{server.client.job(job['id'])}\n{nodes_of(server)}\n{warnings(server)}"
    assert server.client.job(job["id"])["notes"] == [note] and note in server.corral("get", job["id"])
    assert f"It runs: 1 of 1 task. {note}." in server.corral("explain", job["id"])
    assert f"; {note}" in server.corral("events", job["id"])
    server.corral("exec", job["id"], "main-0", "--", "touch", "done")
    assert server.ended(job)["state"] == "succeeded" and "5000" in server.log(job, "main-0")


def test_event_files_of_a_container_and_in_hdfs_are_curves_of_its_job(server: OnYarn, yarn: Yarn) -> None:
    now = time.time()
    loss, rate = (scalars((now - 40, tag, 2 * value), (now - 1, tag, value)) for tag, value in POINTS)
    yarn.hdfs.write(f"/runs/a/{NAME}", rate)
    script = f"mkdir -p runs/b; echo {base64.b64encode(loss).decode()} | base64 -d >runs/b/{NAME}"
    named = [f"{yarn.hdfs.native}/runs"]
    job = server.submit(on_yarn("curves", script, devices=0, report={"tensorboard": named}))
    assert server.ended(job)["state"] == "succeeded", server.log(job, "main-0")
    items = until(lambda: found if len(found := server.client.series(job=job["id"])["items"]) == 2 else None)
    shown = {each["labels"]["tag"]: [value for value in each["mean"] if value is not None] for each in items}
    assert shown == {tag: [2 * value, value] for tag, value in POINTS}
    runs = {each["labels"]["tag"]: each["labels"]["run"] for each in items}
    assert runs == {"loss": "runs/b", "rate": f"{named[0].partition('://')[2]}/a"}


def test_a_cluster_document_says_what_yarn_does_not_know_of_its_nodes(server: OnYarn, tmp_path: Path) -> None:
    file = tmp_path / "yarn.yaml"
    devices = "{count: 4, model: A100, cells: {pcie-switch: 2}}"
    file.write_text(
        f"kind: Cluster\nengine: yarn\nnode: {{devices: {devices}}}\nracks: {{r1: {{nodes: [nm1, nm2]}}}}\n"
    )
    script = 'echo "devices $CORRAL_DEVICES"; while [ ! -e done ]; do sleep 0.1; done'
    job = on_yarn("near-each-other", script, replicas=2, topology={"required": "rack"})
    job["roles"]["main"]["resources"]["devices"] = {"count": 2, "model": "A100"}
    waiting = server.submit(job, wait_for_capacity=True)
    server.corral("apply", str(file), "-m", "one rack of A100")
    try:
        server.until(waiting, lambda now: now["state"] == "running")
        given = [server.printed(waiting, task, r"devices (\S+)")[1] for task in server.tasks(waiting)]
        assert set(given) <= {"0,1", "2,3"}, "two devices of one switch"
        node = server.client.node("yarn/nm1")
        assert node["levels"] == {"rack": "r1"} and {each["model"] for each in node["devices"]} == {"A100"}
        file.write_text(file.read_text().replace("count: 4", "count: 3").replace(", cells: {pcie-switch: 2}", ""))
        server.corral("apply", str(file), "-m", "a device too few")
        differs = {"what": "devices", "configured": "3 × A100", "reported": "4 × A100"}
        until(lambda: differs in server.client.node("yarn/nm1")["mismatches"])
    finally:
        server.corral("delete", "cluster/yarn")
    for task in server.tasks(waiting):
        server.corral("exec", waiting["id"], task, "--", "touch", "done")
    assert server.ended(waiting)["state"] == "succeeded"
    until(lambda: {each["model"] for each in server.client.node("yarn/nm1")["devices"]} == {""})


def test_a_killed_container_is_a_lost_slot_and_the_task_is_tried_again(server: OnYarn) -> None:
    command = "case $CORRAL_ATTEMPT in *.0) echo first; sleep 1000;; esac; echo second"
    job = server.submit(on_yarn("again", command))
    server.printed(job, "main-0", "first")
    first = server.attempts(job, "main-0")[0]["id"]
    for agent in until(lambda: agents_of(first) or None):
        os.kill(agent, signal.SIGKILL)
    assert server.ended(job)["state"] == "succeeded"
    assert [each["exit"]["code"] for each in server.attempts(job, "main-0")] == [-101, 0]


def test_a_job_that_is_stopped_ends_and_gives_its_containers_back(server: OnYarn) -> None:
    job = server.submit(on_yarn("stopped", "trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.1; done"))
    server.printed(job, "main-0", "ready")
    server.client.stop(job["id"])
    assert server.ended(job)["state"] == "stopped"
    assert "asked" in server.log(job, "main-0")
    server.gone(job)


def test_a_service_of_a_container_is_opened_in_the_browser_until_its_job_ends(server: OnYarn) -> None:
    document = on_yarn("served", "", devices=0)
    document["roles"]["main"] |= {
        "command": [sys.executable, "-c", opened_services.PROGRAM],
        "ports": opened_services.PORTS,
    }
    opened_services.is_used_until_its_job_ends(server, document)


@pytest.mark.frameworks
@pytest.mark.timeout(900)
def test_the_buttons_of_a_job_open_the_services_of_a_container_in_a_browser(server: OnYarn) -> None:
    if reason := packages.missing():
        pytest.fail(reason) if IN_CI else pytest.skip(reason)
    programs = environment("tensorboard")
    document = on_yarn("several", "")
    document["roles"]["main"] = {
        "resources": {"cpu": "1", "memory": "1Gi", "devices": 0},
        "env": {"PATH": f"{programs}:/usr/bin:/bin"},
        "command": several_services.command(sys.executable, folder="served", written="$PWD/runs"),
        "ports": several_services.PORTS,
    }
    several_services.are_opened_by_their_buttons(server, document, keeps=False)


@pytest.mark.frameworks
def test_a_notebook_in_a_container_is_opened_and_tells_that_somebody_works_in_it(server: OnYarn) -> None:
    programs = environment("notebook")
    document = on_yarn("lab", "", framework="notebook", idle="1h")
    document["roles"]["main"] = {
        "resources": {"cpu": "1", "memory": "1Gi", "devices": 0},
        "env": {"PATH": f"{programs}:/usr/bin:/bin"},
    }
    is_opened_and_tells_that_somebody_works_in_it(server, document)


def test_jobs_run_as_the_users_and_in_the_queues_that_theirs_are_mapped_to(server: OnYarn) -> None:
    tokens = {user: server.token(user) for user in ("ada", "bob")}
    queues = {"ada": "default", "bob": "research"}
    jobs: dict[str, Job] = {}
    apps: dict[str, dict[str, Any]] = {}
    given: dict[str, dict[str, Any]] = {}
    for user, token in tokens.items():
        with Client(server.url, token) as client:
            jobs[user] = dict(client.submit(json.dumps(on_yarn(f"of-{user}", "sleep 1000", queue=queues[user]))))
    for user, job in jobs.items():
        server.until(job, lambda now: now["state"] == "running")
        apps[user] = server.app_of(job)
        assert (apps[user]["user"], apps[user]["queue"]) == (user, f"root.{queues[user]}")
        given[user], permission = server.credentials(apps[user])
        assert permission == "600", "nobody else reads what admits a slot"
    theirs = {"service": apps["bob"]["name"], "instance": "main-n0-0", "container": "container_1_1_1_1", "host": "h"}
    for token in ("", tokens["bob"], given["ada"]["token"]):
        assert refused(server, token, theirs) == 401
    for job in jobs.values():
        server.client.stop(job["id"])
    for job in jobs.values():
        server.ended(job)
    server.gone(*jobs.values())


def test_what_a_mapreduce_job_uses_is_not_counted_as_free_and_the_accounts_agree_with_yarns(
    server: OnYarn, tmp_path: Path
) -> None:
    yarn = server.yarn
    yarn.hdfs.write("/user/bob/words", b"one two two\n")
    job = server.submit(on_yarn("beside", f"while [ ! -e {tmp_path}/done ]; do sleep 0.1; done", replicas=2))
    server.all_run(job)
    until(lambda: True if not taken(server) else None)
    counting = word_count(yarn, "bob", "/user/bob/words", "/user/bob/counts")
    until(lambda: True if taken(server) == ["another YARN application holds it"] else None)
    until(lambda: True if (used := others_mb(yarn)) > 384 and memory_mb(server) == ALL_MB - used else None)
    (use,) = server.client.cluster_use()["items"]
    beside = [app for app in use["applications"] if not app["name"].startswith("corral-")]  # of other tests' servers
    assert [(app["user"], app["kind"]) for app in beside] == [("bob", "MAPREDUCE")]
    assert use["others"]["memoryBytes"] > 0
    assert use["corral"]["memoryBytes"] == (384 + 2 * 128) * 2**20
    assert {queue["name"] for queue in use["queues"]} == {"root.default", "root.research"}
    assert counting.wait(240) == 0
    assert yarn.hdfs.read("/user/bob/counts/part-r-00000") == b"one\t1\ntwo\t2\n"
    until(lambda: True if not taken(server) and memory_mb(server) == ALL_MB - others_mb(yarn) else None)
    app = server.app_of(job)["id"]
    (tmp_path / "done").touch()
    assert server.ended(job)["state"] == "succeeded"
    assert [len(server.attempts(job, task)) for task in server.tasks(job)] == [1, 1]
    server.gone(job)
    agrees_with_the_resource_manager(server, job, app)


def agrees_with_the_resource_manager(server: OnYarn, job: Job, app: str) -> None:
    """Compare what a job with two tasks of one device, one processor and 128 MB used, by Corral and by YARN.

    YARN counts a container from its allocation to its end, Corral a task. The rest is of the service's master, which has
    no device and outlives the containers. So a task's time and a container's differ by no more than the task's and the
    master's.
    """
    with urllib.request.urlopen(f"{server.yarn.url}/ws/v1/cluster/apps/{app}", timeout=120) as answer:
        told = json.loads(answer.read(), object_pairs_hook=all_pairs)["app"]
    by_name = {each["key"]: int(each["value"]) for each in told["resourceSecondsMap"]}
    containers, master = by_name["yarn.io/gpu"], told["vcoreSeconds"] - by_name["yarn.io/gpu"]
    ours = next(each for each in server.client.usage(by="job")["items"] if each["key"] == job["id"])
    rounding = 3  # YARN cuts the seconds of each of its three containers
    shown = f"{ours}\n{told}"
    assert 0 < ours["deviceSeconds"] <= containers + rounding, shown
    assert containers <= ours["deviceSeconds"] + 2 * master - ours["taskSeconds"] + rounding, shown
    assert ours["cpuSeconds"] == pytest.approx(ours["deviceSeconds"], abs=0.001), "one processor beside each device"
    assert ours["memoryGibSeconds"] == pytest.approx(ours["deviceSeconds"] * 128 / 1024, abs=0.001), (
        "128 MB beside each device"
    )
    assert told["memorySeconds"] == pytest.approx(384 * master + 128 * containers, abs=384 * rounding), shown


def all_pairs(found: list[tuple[str, Any]]) -> Any:
    """An object of JSON; its values alone if it has the same key twice, as YARN writes a map."""
    return dict(found) if len({key for key, _ in found}) == len(found) else [value for _, value in found]


def nodes_of(server: OnYarn) -> list[Any]:
    """YARN's nodes as Corral shows them."""
    return [each for each in server.client.nodes()["items"] if each["engine"] == "yarn"]


def taken(server: OnYarn) -> list[str]:
    """Why devices of YARN's nodes cannot be used."""
    return [device["healthReason"] for node in nodes_of(server) for device in node["devices"] if not device["healthy"]]


def equally_free(server: OnYarn) -> bool:
    """Whether Corral sees both nodes ready, and no application, such as a service's last master, on either."""
    return all(node["ready"] for node in nodes_of(server)) and not taken(server) and memory_mb(server) == ALL_MB


def warnings(server: OnYarn) -> str:
    """The end of control's log, without the lines that tell of a container that is not there yet."""
    lines = (server.data / "logs" / "control.log").read_text().splitlines()
    return "\n".join([each for each in lines if '"container-awaited"' not in each][-20:])


def memory_mb(server: OnYarn) -> int:
    """The memory of YARN's nodes that Corral may use."""
    return sum(int(node["total"]["memoryBytes"]) for node in nodes_of(server)) // 2**20


def others_mb(yarn: Yarn) -> int:
    """The memory that others use: whole applications, and the masters of Corral's services, of 384 MB each."""
    live = yarn.live_apps()
    return sum(384 if each["name"].startswith("corral-") else int(each["allocatedMB"]) for each in live)


def refused(server: OnYarn, token: str, hello: dict[str, Any]) -> int:
    """The status of a hello that is refused."""
    headers = {"Authorization": f"Bearer {token}"}
    url = f"{server.url}/api/v3/slots/yarn/hello"
    request = urllib.request.Request(url, data=json.dumps(hello).encode(), headers=headers, method="POST")
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(request, timeout=120)
    return error.value.code


@pytest.mark.frameworks
@pytest.mark.timeout(900)
def test_why_a_gang_is_slow_is_told_and_nodes_are_measured(server: OnYarn, tmp_path: Path) -> None:
    hang = tmp_path / "hang"
    role = {"resources": {"cpu": "1", "memory": "512Mi"}}
    job = gang("slow", environment("pytorch") / "python", str(hang), **role)
    nodes = [f"yarn/{name}" for name in THERE]
    looked_into(server, {**job, "nodes": THERE}, hang, tmp_path / "suite.yaml", nodes, ("process-launch", "tcp-bw"))
